# SPDX-License-Identifier: Apache-2.0
#
# kazoo and redis-py as clients of the comparison suite; compare/README.md has the protocol.
import json
import resource
import select
import socket
import sys
import threading
import time
from urllib.parse import urlsplit


def say(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Latencies:
    """Times by microsecond, as histogram."""

    def __init__(self):
        self.values = []

    def summary(self):
        values = sorted(self.values)

        def at(percent):
            if not values:
                return 0
            index = max(0, -(-len(values) * percent // 100) - 1)
            return values[int(index)] / 1000

        buckets = {}
        for value in values:
            digit = max(1, 10 ** (len(str(value)) - 3))
            buckets[value // digit * digit] = buckets.get(value // digit * digit, 0) + 1
        return {"count": len(values), "mean_us": sum(values) / max(1, len(values)) / 1000,
                "p50_us": at(50), "p90_us": at(90), "p99_us": at(99), "p999_us": at(99.9),
                "max_us": at(100), "buckets": [[k, v] for k, v in sorted(buckets.items())]}


def redis_client(url):
    """A client for all threads, with a pool of connections, as redis-py is used."""
    import redis
    parts = urlsplit(url)
    connection = redis.Redis(host=parts.hostname, port=parts.port)

    def lock(name):
        one = connection.lock("peer:" + name, timeout=30)
        return (lambda: one.acquire()), (lambda: one.release())
    return lock


def kazoo_session(url):
    import logging
    from kazoo.client import KazooClient
    logging.disable(logging.CRITICAL)
    client = KazooClient(hosts=urlsplit(url).netloc)
    client.start()
    return client


def kazoo_client(url):
    """A session for all threads."""
    client = kazoo_session(url)

    def lock(name):
        one = client.Lock("/peer/" + name.replace("/", "_"), "me")
        return (lambda: one.acquire()), (lambda: one.release())
    return lock


def on_threads(bodies):
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def goes():
    """Each `go` of the suite asks for a measurement."""
    say(event="ready")
    while sys.stdin.readline().strip() == "go":
        yield


def run_pairs(job, locks):
    count = job.get("count", 0)

    def body(lock, end, acquire_times, pair_times):
        take, give = lock
        done = 0
        while (done < count) if count else (time.monotonic() < end):
            start = time.monotonic_ns()
            take()
            held = time.monotonic_ns()
            give()
            acquire_times.values.append(held - start)
            pair_times.values.append(time.monotonic_ns() - start)
            done += 1

    for take, give in locks:
        take()
        give()
    for _ in goes():
        times = Latencies(), Latencies()
        cpu_before, start = cpu(), time.monotonic()
        end = start + job["duration_ms"] / 1000
        on_threads([lambda lock=lock: body(lock, end, *times) for lock in locks])
        say(event="result", pairs=len(times[1].values), seconds=time.monotonic() - start,
            cpu_seconds=cpu() - cpu_before, acquire=times[0].summary(), pair=times[1].summary())


def run_open(job, locks):
    """Each request counts from when it was due, as in compare/drivers/programs.cpp."""
    take, give = locks[0]
    for _ in range(5):
        take()
        give()
    for _ in goes():
        rate, start, times = job["rate"], time.monotonic_ns(), Latencies()
        for i in range(rate * job["duration_ms"] // 1000):
            due = start + 1_000_000_000 * i // rate
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
            take()
            times.values.append(max(0, time.monotonic_ns() - due))
            give()
        say(event="result", rate=rate, acquire=times.summary())


def run_contend(job, locks):
    def body(index, lock, end, grants):
        take, give = lock
        while time.monotonic() < end:
            asked = boot_ns()
            take()
            got = boot_ns()
            grants.append([index, asked, got, boot_ns()])
            give()

    for _ in goes():
        grants, end = [], time.monotonic() + job["duration_ms"] / 1000
        on_threads([lambda i=i, lock=lock: body(i, lock, end, grants)
                    for i, lock in enumerate(locks)])
        say(event="result", grants=grants)


def kazoo_permits(job):
    """kazoo's Semaphore has a format of its own: it is one of kazoo's clients alone."""
    client, name = kazoo_session(job["url"]), job["lock"].replace("/", "_")

    def permit():
        one = client.Semaphore("/peer-permits/" + name, "me", max_leases=job["permits"])
        return (lambda: one.acquire()), (lambda: one.release())
    return [permit() for _ in range(job["clients"])]


def run_share(job, permits):
    def body(index, permit, end, grants):
        take, give = permit
        while time.monotonic() < end:
            asked = boot_ns()
            take()
            got = boot_ns()
            time.sleep(job["hold_us"] / 1e6)
            grants.append([index, asked, got, boot_ns(), 0])
            give()

    for _ in goes():
        grants, end = [], time.monotonic() + job["duration_ms"] / 1000
        on_threads([lambda i=i, permit=permit: body(i, permit, end, grants)
                    for i, permit in enumerate(permits)])
        say(event="result", grants=grants)


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class RedisGuarded:
    """redis-py's Lock, renewed by a thread at a third of its time-out, as its manual has it."""

    def __init__(self, job, on_loss):
        import redis
        parts = urlsplit(job["url"])
        self.client = redis.Redis(host=parts.hostname, port=parts.port)
        self.lease = job["lease_ms"] / 1000
        self.lock = self.client.lock("peer:" + job["lock"], timeout=self.lease, thread_local=False)
        self.on_loss = on_loss
        self.client.ping()

    def acquire(self):
        from redis.exceptions import RedisError
        self.lost = ""
        while True:
            sent = boot_ns()
            try:
                if self.lock.acquire(blocking=False):
                    break
            except RedisError:
                pass  # the server is away; an application would ask again
            time.sleep(0.1)
        self.until = sent + int(self.lease * 1e9)
        self.stop = threading.Event()
        threading.Thread(target=self.renew, args=(self.stop,), daemon=True).start()

    def renew(self, stop):
        from redis.exceptions import LockError
        while not stop.wait(self.lease / 3):
            sent = boot_ns()
            try:
                self.lock.reacquire()
                self.until = sent + int(self.lease * 1e9)
            except LockError as error:
                self.lost = type(error).__name__
                self.on_loss()
                return
            except Exception:
                continue

    def release(self):
        self.stop.set()
        self.lock.release()


class KazooGuarded:
    """kazoo's Lock. Its manual: hold nothing while the state is SUSPENDED or LOST."""

    until = None

    def __init__(self, job, on_loss):
        import logging
        from kazoo.client import KazooClient
        logging.disable(logging.CRITICAL)
        self.client = KazooClient(hosts=urlsplit(job["url"]).netloc, timeout=job["lease_ms"] / 1000,
                                  connection_retry={"max_tries": -1, "max_delay": 1})
        self.on_loss = on_loss
        self.lost = "not held"
        self.client.add_listener(self.listen)
        self.client.start()
        self.lock = self.client.Lock("/peer/" + job["lock"].replace("/", "_"), "me")

    def listen(self, state):
        if state != "CONNECTED" and not self.lost:
            self.lost = state
            self.on_loss()

    def acquire(self):
        self.lost = "not held"
        self.lock.acquire()
        self.lost = "" if self.client.connected else "SUSPENDED"

    def release(self):
        self.lost = "not held"
        self.lock.release()


class Guard:
    """What compare/drivers/guard.cpp does, with a client that says less."""

    def __init__(self, job):
        self.told, self.grant, self.until = True, job["first_grant"] - 1, None
        self.resource = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.resource.connect(job["resource"])
        kind = RedisGuarded if job["driver"] == "redis-py" else KazooGuarded
        self.lock = kind(job, self.tell_loss)

    def event(self, what, at=None, **more):
        say(event=what, at=at or boot_ns(), grant=self.grant, **more)

    def tell_loss(self):
        if not self.told:
            self.told = True
            self.event("told_lost", reason=self.lock.lost)

    def write(self):
        self.resource.send(b"%d 0" % self.grant)

    def known_until(self):
        self.until = self.lock.until
        return {} if self.until is None else {"until": self.until}

    def hold(self):
        self.event("wanted")
        self.lock.acquire()
        self.grant += 1
        self.told = False
        more, looked = self.known_until(), boot_ns()
        self.event("granted", looked, **more)
        self.write()
        while True:
            if self.lock.lost:
                return self.tell_loss()
            looks = boot_ns()
            if self.lock.until is not None and self.lock.until > self.until:
                # Since the last look; on a busy machine that may be long ago.
                self.event("extended", looked, **self.known_until())
            looked = looks
            if select.select([sys.stdin], [], [], 0.02)[0]:
                if sys.stdin.readline().strip() == "release":
                    self.event("releasing")
                    return self.give_back("released")
            self.write()

    def give_back(self, what):
        self.told = True
        try:
            self.lock.release()
            self.event(what, error="")
        except Exception as error:
            self.event(what, error=type(error).__name__)

    def run(self):
        say(event="ready")
        while command := sys.stdin.readline().strip():
            if command == "acquire":
                self.hold()
            elif command == "release":
                self.give_back("late_release")


def main():
    job = json.loads(sys.stdin.readline())
    try:
        if job["program"] == "guard":
            return Guard(job).run()
        if job["program"] == "share":
            return run_share(job, kazoo_permits(job))
        client = (redis_client if job["driver"] == "redis-py" else kazoo_client)(job["url"])
        contended = job["program"] == "contend"
        locks = [client(job["lock"] if contended else "%s/%d" % (job["lock"], i))
                 for i in range(job.get("clients", 1))]
        {"contend": run_contend, "open": run_open, "pairs": run_pairs}[job["program"]](job, locks)
    except Exception as error:
        say(event="failed", why="%s: %s" % (type(error).__name__, error))
        sys.exit(1)


main()
