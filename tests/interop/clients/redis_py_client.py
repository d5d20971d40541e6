# SPDX-License-Identifier: Apache-2.0
#
# redis-py's Lock: HOST:PORT LEASE_MS PREFIX.
import sys

from line_protocol import needs, serve

redis = needs("redis", "python3-redis")

endpoint, lease, prefix = sys.argv[1:4]
host, port = endpoint.split(":")
client = redis.Redis(host=host, port=int(port))


class Lock:
    def __init__(self, name):
        self.lock = client.lock(prefix + name, timeout=int(lease) / 1000, sleep=0.01)

    def acquire(self, wait):
        return self.lock.acquire(blocking=wait)

    def release_(self):
        self.lock.release()

    release = release_

    def extend_(self):
        return self.lock.reacquire()


client.ping()
serve(Lock)
