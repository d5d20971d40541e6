# SPDX-License-Identifier: Apache-2.0
#
# A lock by pylibmc's `add`: HOST:PORT,... LEASE_SECONDS PREFIX BEHAVIORS.
import json
import sys
import time
import uuid

from line_protocol import needs, serve

pylibmc = needs("pylibmc", "python3-pylibmc")

servers, lease, prefix, behaviors = sys.argv[1:5]
client = pylibmc.Client(servers.split(","), behaviors=json.loads(behaviors))


class Lock:
    def __init__(self, name):
        self.key = prefix + name
        self.owner = uuid.uuid4().hex

    def acquire(self, wait):
        while not client.add(self.key, self.owner, time=int(lease)):
            if not wait:
                return False
            time.sleep(0.01)
        return True

    def release_(self):
        return client.get(self.key) == self.owner and client.delete(self.key)

    release = release_


serve(Lock)
