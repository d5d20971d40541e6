# SPDX-License-Identifier: Apache-2.0
#
# What the Python clients share: the protocol of tests/interop/support/foreign_client.hpp.
import sys
import time


def say(*words):
    print(*words, flush=True)


def needs(module, package):
    """The module, or the word how to get it."""
    try:
        return __import__(module)
    except ImportError:
        say("missing apt-get install", package)
        sys.exit(1)


def increment(file):
    """Loses the increments of others, if there are others."""
    with open(file) as stream:
        number = int(stream.read())
    time.sleep(0.001)
    with open(file, "w") as stream:
        stream.write(str(number + 1))


def answer(lock_of, lock, command, *arguments):
    """The answer, and the lock that the next command is about."""
    if command in ("try", "acquire"):
        lock = lock_of(arguments[0])
        got = lock.acquire(command == "acquire")
        return lock, "held %d" % time.monotonic_ns() if got else "busy"
    if command == "increment":
        increment(arguments[0])
        return lock, "done"
    if command == "count":
        name, times, file = arguments
        for _ in range(int(times)):
            lock = lock_of(name)
            lock.acquire(True)
            increment(file)
            lock.release()
        return lock, "done"
    # release, extend, break: whether it says that it has worked. None: it says nothing.
    return lock, "refused" if getattr(lock, command + "_")() is False else "done"


def serve(lock_of):
    """`lock_of(name)`: has acquire(wait), release_() and, if the client can, extend_() and break_()."""
    say("ready")
    lock = None
    for line in sys.stdin:
        words = line.split()
        if words == ["exit"]:
            return
        try:
            lock, text = answer(lock_of, lock, *words)
            say(text)
        except Exception as error:
            say("error", type(error).__name__, " ".join(str(error).split()))
