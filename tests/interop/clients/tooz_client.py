# SPDX-License-Identifier: Apache-2.0
#
# tooz's locks, on the store of its URL: URL.
import logging
import sys

from line_protocol import needs, serve

needs("tooz", "python3-tooz")
from tooz import coordination  # noqa: E402


class Lock:
    def __init__(self, name):
        # Its driver for Redis takes text, the others bytes.
        self.lock = coordinator.get_lock(name if url.startswith("redis:") else name.encode())

    def acquire(self, wait):
        return self.lock.acquire(blocking=wait)

    def release_(self):
        return self.lock.release()

    release = release_

    def extend_(self):
        return self.lock.heartbeat()

    def break_(self):
        return self.lock.break_()


logging.disable(logging.CRITICAL)
url = sys.argv[1]
coordinator = coordination.get_coordinator(url, b"tooz-member")
coordinator.start()
serve(Lock)
