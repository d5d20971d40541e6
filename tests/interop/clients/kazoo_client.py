# SPDX-License-Identifier: Apache-2.0
#
# kazoo's locks: HOST:PORT SESSION_MS ROOT KIND [PATTERN]. KIND: Lock, ReadLock or WriteLock. PATTERN:
# what names of other makes have before their number (`extra_lock_patterns`). KIND Semaphore: how many
# leases it has, instead.
import logging
import sys

from line_protocol import needs, serve

needs("kazoo", "python3-kazoo")
from kazoo.client import KazooClient  # noqa: E402

endpoint, lease, root, kind = sys.argv[1:5]
patterns = sys.argv[5:]


class Lock:
    def __init__(self, name):
        more = {"extra_lock_patterns": patterns}
        if kind == "Semaphore":
            more = {"max_leases": int(patterns[0])}
        self.lock = getattr(client, kind)(root + name, "kazoo", **more)

    def acquire(self, wait):
        return self.lock.acquire(blocking=wait)

    def release_(self):
        return self.lock.release()

    release = release_


logging.disable(logging.CRITICAL)
client = KazooClient(hosts=endpoint, timeout=int(lease) / 1000,
                     connection_retry={"max_tries": -1, "max_delay": 0.5})
client.start(60)
serve(Lock)
