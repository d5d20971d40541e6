# SPDX-License-Identifier: Apache-2.0
"""Random mutants of the shipped sources. scripts/mutants --random runs them.

One build contains all mutants. The environment variable DLOCK_MUTANT holds the number of the active
mutant; 0 means none. Each mutant changes one line of a copy of the project, build/mutants/tree.
"""
import collections
import concurrent.futures
import fcntl
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from mutant_places import KINDS, REACHED, ROOT, SWITCH, SWITCH_TEXT, draw, git_files, read_sources, switched

ROUNDS = 10  # builds, each without the mutants that did not compile before
# The tests of a module, cheapest tier first. The longest prefix of the path decides.
#   contract/STORE   the contract suite on this store
#   sim/STORE        runs of the simulation, mode exclusive
#   sim/STORE/MODE   runs in another mode, or its scenarios
#   sim-migration    runs of a fleet in mode move; /leased: with a leased gate
#   cli              the quick cases of cli_test
#   cli/CASES        other cases of cli_test
#   PROGRAM/CASES    some cases of another program
MODULES = {
    "": "core_test config_test engine_test mutex_test async_test multi_test leader_test schedule_test "
        "contract/memory contract/local sim/local",
    "include/dlock/testing": "testing_test multi_test leader_test no_threads_test",
    "core/adoption": "core_test engine_test contract/memory cli sim/memcached/exports",
    "core/config": "config_test core_test engine_test contract/memory cli cli/*CliBadInput*",
    "core/fencing": "core_test config_test fenced_register_test contract/memory contract/local cli",
    "core/fsm": "core_test engine_test leader_test contract/memory sim/local sim/memcached sim/redis",
    "core/leader": "leader_test no_threads_test contract/memory cli/CliLeader.* "
                   "surroundings_test/*OutOf*/memory",
    "core/loop": "core_test driving_schedules_test async_test no_threads_test engine_test "
                 "mutex_test leader_test cache_test contract/memory contract/local sim/local "
                 "surroundings_test/*OutOf*/memory:*OutOf*/redis",
    "core/manager": "config_test engine_test mutex_test async_test cache_test multi_test "
                    "multi_stores_test leader_test schedule_test loss_told_test no_threads_test "
                    "contract/memory contract/local cli sim/local/several sim/local/cached "
                    "surroundings_test/*OutOf*/memory",
    "core/process": "core_test engine_test mutex_test no_threads_test contract/memory contract/local cli",
    "core/routes": "config_test engine_test contract/memory stores_test",
    "core/schedule": "schedule_test contract/memory cli cli/CliScheduled.*",
    "core/semaphore": "engine_test contract/memory cli sim/local/permits",
    "core/spi": "core_test config_test engine_test redis_test memcached_test zookeeper_test "
                "local_test contract/memory contract/redis cli cli/*CliBadInput*",
    "core/store": "core_test engine_test mutex_test cache_test async_test loss_told_test multi_test "
                  "no_threads_test leader_test contract/memory contract/local sim/local sim/redis "
                  "sim/local/cached sim/local/readers sim/local/several sim/memcached/exports "
                  "surroundings_test/*OutOf*/memory:*OutOf*/redis",
    "migration": "core_test migration_test leased_test engine_test contract/memory "
                 "sim-migration sim-migration/leased "
                 "cli/CliMigrate.*:LeasedCli.*:CliMigratePattern.*:CliOutput*",
    "backends": "core_test contract/memory contract/local contract/redis",
    "backends/local": "local_test local_power_cut_test local_no_threads_test contract/local sim/local "
                      "sim/local/readers sim/local/permits sim/local/scenarios "
                      "hostile_test/*HostileLocal*",
    "backends/memory": "engine_test mutex_test cache_test multi_test leader_test contract/memory",
    "backends/redis": "redis_test contract/redis sim/redis sim/redis/permits sim/redis/readers "
                      "sim/redis/exports sim/redis/scenarios simulated_redis_test "
                      "gone_server_test/*Redis "
                      "hostile_test/*HostileRedis*:SelfTestOfRedis.* redis_live_test/RedisAccess.*:"
                      "RedisAdoption.*:RedisFair.*:RedisHanded.*:RedisPermits.*:RedisQueue.*:"
                      "RedisReaders.*:RedisSelfTest.*:RedisTokens.*",
    "backends/redis/wire": "redis_test contract/redis sim/redis sim/redis/scenarios "
                           "hostile_test/*HostileRedis* gone_server_test/*Redis "
                           "redis_live_test/RedisAccess.*:"
                           "RedisFailover.*:RedisFaults.A*:RedisFaults.F06*:"
                           "RedisFaults.F07*:RedisFaults.F09*:RedisFaults.F3*:RedisLateCopy.*:"
                           "RedisPasswordFile.*:RedisQueue.*:RedisRefused.*:RedisTls.* redis_threads_test",
    "backends/memcached": "memcached_test contract/memcached sim/memcached sim/memcached/exports "
                          "sim/memcached/scenarios gone_server_test/*Memcached "
                          "hostile_test/*Memcached* memcached_live_test/MemcachedClassic.*:"
                          "MemcachedConnection.*:MemcachedCost.*:MemcachedEviction.*:"
                          "MemcachedFailure.*:MemcachedServers.*:*MemcachedRefusals.*:"
                          "*MemcachedDialects.*:MemcachedLists.*:MemcachedClose.*",
    "backends/memcached/wire": "memcached_test contract/memcached sim/memcached "
                               "gone_server_test/*Memcached "
                               "hostile_test/*Memcached* memcached_live_test/MemcachedConnection.*:"
                               "MemcachedClose.*:MemcachedLists.*:*MemcachedRefusals.*:"
                               "*MemcachedDialects.*:MemcachedPipeline.*:MemcachedSlowLink.*:"
                               "MemcachedServers.* memcached_no_threads_test",
    "backends/zookeeper": "zookeeper_test zookeeper_client_test contract/zookeeper sim/zookeeper "
                          "sim/zookeeper/permits sim/zookeeper/scenarios zookeeper_settings_test "
                          "zookeeper_failure_test zookeeper_tokens_test gone_server_test/*ZooKeeper",
    "backends/zookeeper/lock": "zookeeper_test contract/zookeeper sim/zookeeper "
                               "sim/zookeeper/permits sim/zookeeper/readers sim/zookeeper/scenarios "
                               "gone_server_test/*ZooKeeper zookeeper_queue_test "
                               "zookeeper_failure_test zookeeper_foreign_test zookeeper_tokens_test "
                               "zookeeper_counter_test zookeeper_settings_test "
                               "zookeeper_migration_test/ZooKeeperSeal.*:MigrationGuide.FromRedis*:"
                               "MigrationCost.RedisToZooKeeper*",
    "backends/zookeeper/wire": "zookeeper_test zookeeper_client_test contract/zookeeper "
                               "sim/zookeeper sim/zookeeper/scenarios gone_server_test/*ZooKeeper "
                               "hostile_test/*HostileZooKeeper* "
                               "zookeeper_failure_test zookeeper_settings_test "
                               "zookeeper_no_threads_test "
                               "zookeeper_ensemble_test/*ASilentServer*:*F16* zookeeper_rows_test "
                               "zookeeper_session_test/*P15*:*F65*:*AReleaseThat*",
    "testing": "testing_test multi_test leader_test no_threads_test",
    "cli": "cli cli/*CliBadInput* cli/CliHold.*:CliRunLoss.*:*CliRunSignal.* stores_test "
           "cli/CliMigrate.*:LeasedCli.*:CliMigratePattern.* "
           "cli/CliAsk.*:CliBounds.*:CliLeader.*:CliMargin.*:CliScheduled.*:CliWaiting.*",
    "cli/verbs/migrate": "cli/CliMigrate.*:LeasedCli.*:CliMigratePattern.*:CliMigrateKilled.* "
                         "cli/*CliBadInput*",
    "program": "cli cli/*CliBadInput* cli/CliSecrets.* compare_names_test",
    "compare": "compare_figures_test compare_names_test compare_plant_test compare_end_test "
               "compare_scenarios_test compare_worker_test compare_peers_test/*AFloorThatFails*:"
               "*StandUnder*",
    "compare/report": "compare_figures_test compare_names_test",
}
TIERS = ("contract/", "cli", "stores_test", "sim", "surroundings_test")  # after the unit programs
CLI_CASES = ("CliAdoption*:CliBreak*:CliCompare*:*CliConfig*:CliHelp*:CliList*:CliNested*:"
             "CliOutput*:CliQuiet*:CliRun.*:CliSemaphore*:CliShared*:CliStatus*:LossPolicy*")
SEEDS = 200  # per run of the simulation; a quarter in another mode
PATIENCE = 900  # seconds for one test program without a mutant

# -- Programs ---------------------------------------------------------------------------------------


class Stopped(Exception):
    """The run was interrupted."""


class Programs:
    """Starts programs and ends them, with all processes that they started. Thread safety: any thread."""

    def __init__(self):
        self.lock, self.running, self.stopped = threading.Lock(), set(), False

    def run(self, words, number=0, patience=None, watch=lambda output: None, **variables):
        """Returns the exit status (None: a timeout) and the output."""
        with tempfile.TemporaryDirectory(prefix="dlock-mutant-", ignore_cleanup_errors=True) as folder:
            os.chmod(folder, 0o755)  # some cases run the command as another user
            output = pathlib.Path(folder, "output.txt")
            environment = dict(os.environ, TMPDIR=folder, DLOCK_MUTANT=str(number), **variables)
            with self.lock, output.open("w") as out:
                if self.stopped:
                    raise Stopped
                process = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                           stdout=out, stderr=out, start_new_session=True)
                self.running.add(process)
            end = time.monotonic() + (patience or 1e9)
            try:
                while process.poll() is None and time.monotonic() < end:
                    try:
                        process.wait(0.5)
                    except subprocess.TimeoutExpired:
                        watch(output)
                status = process.poll()
            finally:
                self.end(process, folder)
            if self.stopped:
                raise Stopped
            return status, output.read_text(errors="replace")

    def end(self, process, folder):
        """Kills the process, and each descendant: only these have this TMPDIR."""
        with self.lock:
            self.running.discard(process)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        mark = f"TMPDIR={folder}".encode()
        for _ in range(20):
            found = [pid for pid in os.listdir("/proc") if pid.isdigit() and has_variable(pid, mark)]
            for pid in found:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not found:
                return
            time.sleep(0.05)

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.running:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


def has_variable(pid, variable):
    try:
        return variable in pathlib.Path("/proc", pid, "environ").read_bytes().split(b"\0")
    except OSError:
        return False


# -- The build --------------------------------------------------------------------------------------


class Build:
    """The mutated copy of the project, and its build folder. Both stay for the next run."""

    def __init__(self, programs, texts, tree=ROOT / "build/mutants/tree"):
        self.programs, self.texts, self.tree, self.shown = programs, texts, tree, 0

    def lock(self):
        """Returns the open lock file of the build folder; exits if another run holds it."""
        self.tree.parent.mkdir(parents=True, exist_ok=True)
        file = (self.tree.parent / "lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"mutants: another run uses {self.tree}; wait for its end")
        return file

    def write(self, mutants):
        """Updates the copy; a file with the same content keeps its time. It has no seeded bugs of the
        simulation, whose places could be mutated."""
        wanted = {SWITCH_PATH: SWITCH_TEXT.encode()}
        for name in git_files():
            if not name.endswith(".edit"):
                wanted[name] = (ROOT / name).read_bytes()
        by_path = collections.defaultdict(list)
        for mutant in mutants:
            by_path[mutant.place.path].append(mutant)
        for path, here in by_path.items():
            wanted[path] = switched(self.texts[path], here).encode()
        for name, content in wanted.items():
            target = self.tree / name
            if not target.is_file() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                if (ROOT / name).exists():
                    shutil.copymode(ROOT / name, target)
        for folder, folders, names in os.walk(self.tree):
            if pathlib.Path(folder) == self.tree and "build" in folders:
                folders.remove("build")
            for name in names:
                path = pathlib.Path(folder, name)
                if str(path.relative_to(self.tree)) not in wanted:
                    path.unlink()

    def make(self, targets):
        """Returns the output of a failed build; None if all targets are built."""
        ccache = {"CCACHE_BASEDIR": str(self.tree), "CCACHE_NOHASHDIR": "1"}
        made, presets = self.tree / "build/build.ninja", self.tree / "CMakePresets.json"
        if not made.exists() or made.stat().st_mtime < presets.stat().st_mtime:
            status, output = self.programs.run(
                ["cmake", "-S", str(self.tree), "--preset", "release"], **ccache)
            if status != 0:
                sys.exit(f"mutants: cmake cannot configure {self.tree}:\n{output[-3000:]}\n"
                         "run ./scripts/build, which installs what is missing")
        status, output = self.programs.run(["ninja", "-C", str(self.tree / "build"), "-k", "0", *targets],
                                           watch=self.show, **ccache)
        return output if status != 0 else None

    def show(self, output):
        steps = re.findall(r"^\[\d+/\d+\]", output.read_text(errors="replace"), re.M)
        if steps and time.monotonic() > self.shown + 10:
            self.shown = time.monotonic()
            print(f"mutants: building {steps[-1]}", file=sys.stderr, flush=True)

    def usable(self, mutants, more, unusable):
        """Builds until all mutants compile; returns them. `more` yields the replacements."""
        for _ in range(ROUNDS):
            self.write(mutants)
            words = {word for one in mutants for word in tests_of(one.place.path)}
            output = self.make(sorted({run_of(word)[0] for word in words}))
            if output is None:
                return mutants
            found = blamed(output, mutants, self.tree)
            if not found:
                sys.exit(f"mutants: the build of {self.tree} fails without an error in a mutated line:\n"
                         + "\n".join(output.splitlines()[-40:]))
            for mutant, error in found.items():
                unusable(mutant, error)
            mutants = [one for one in mutants if one not in found]
            mutants += [one for _, one in zip(range(len(found)), more)]
        sys.exit(f"mutants: {ROUNDS} builds failed; try another --seed")


SWITCH_PATH = "include/" + SWITCH
LOCATION = re.compile(r"([^\s:()]+):(\d+)[:,]")


def blamed(output, mutants, tree):
    """Returns the mutants that did not compile, with the error of each."""
    at_line = {(one.place.path, one.place.line): one for one in mutants}
    lines = output.splitlines()
    errors = [at for at, line in enumerate(lines) if re.search(r"\berror: ", line)]

    def places_in(line):
        for name, number in LOCATION.findall(line):
            yield os.path.relpath(os.path.join(tree, "build", name), tree), int(number)

    def nearest(path, number, error):
        # An error about a missing return is at the end of the function. Only dropped code causes it.
        kinds = ("dropped call", "dropped else") if "return-type" in error else KINDS
        here = [one for one in mutants if one.place.path == path and one.place.kind in kinds]
        here.sort(key=lambda one: (one.place.line > number, abs(one.place.line - number)))
        return here[:1]

    found = {}
    for search in ("line", "context", "nearest"):
        for index, at in enumerate(errors):
            # The lines before an error say where a template is used, and the lines after it are notes.
            first = errors[index - 1] + 1 if index else 0
            last = errors[index + 1] if index + 1 < len(errors) else len(lines)
            context = lines[max(first, at - 15):min(last, at + 15)] if search == "context" else [lines[at]]
            for place in (place for line in context for place in places_in(line)):
                here = nearest(*place, lines[at]) if search == "nearest" else [at_line.get(place)]
                for mutant in filter(None, here):
                    found.setdefault(mutant, lines[at].split("error: ", 1)[1])
        if found:
            break
    return found


# -- The tests --------------------------------------------------------------------------------------


def tests_of(path):
    """Returns the tests of a source's module, cheapest tier first."""
    prefixes = [one for one in MODULES if not one or path == one or path.startswith(one + "/")]
    tier = lambda word: next((at for at, one in enumerate(TIERS, 1) if word.startswith(one)), 0)
    return sorted(MODULES[max(prefixes, key=len)].split(), key=tier)


def run_of(word):
    """Returns a test's program, its filter of cases (None: no GoogleTest program), and its arguments."""
    if word.startswith("contract/"):
        return "contract_test", "*/" + word.split("/")[1], []
    if word.startswith("sim/"):
        store, _, mode = word[4:].partition("/")
        if mode == "scenarios":
            return "dlock-sim", None, ["--store", store, "--scenarios"]
        return "dlock-sim", None, ["--store", store, "--mode", mode or "exclusive",
                                   "--seeds", str(SEEDS // 4 if mode else SEEDS), "--jobs", "1"]
    if word.startswith("sim-migration"):
        return "dlock-sim-migration", None, ["--seeds", str(SEEDS)] + [
            f"--{plan}" for plan in word.split("/")[1:]]
    if word == "cli" or word.startswith("cli/"):
        return "cli_test", word[4:] or CLI_CASES, []
    program, _, cases = word.partition("/")
    return program, cases or "*", []


class Tests:
    """Runs tests. A case that fails without a mutant is excluded. A test runs for a mutant only if it
    reached the mutated line in the run without a mutant."""

    def __init__(self, programs, build):
        self.programs, self.folder = programs, build / "build"
        self.excluded, self.seconds, self.reached = {}, {}, {}

    def run(self, word, number, patience, **variables):
        program, cases, arguments = run_of(word)
        path = self.folder / ("bin" if program.startswith("dlock-sim") else "tests") / program
        words = [str(path), *arguments]
        if cases:
            without = ":".join(self.excluded.get(word, []))
            words += ["--gtest_brief=1", f"--gtest_filter={cases}" + (f"-{without}" if without else "")]
            words += ["--gtest_fail_fast"] if number else []
        status, output = self.programs.run(words, number, patience, **variables)
        return status, re.findall(r"^\[  FAILED  \] ([^\s,]+)", output, re.M), output

    def baseline(self, word):
        """Runs the test without a mutant; returns what is excluded, in words."""
        began = time.monotonic()
        with tempfile.NamedTemporaryFile(prefix="dlock-reached-") as reached:
            os.chmod(reached.name, 0o666)  # some cases run the command as another user
            os.truncate(reached.name, REACHED)
            status, failed, output = self.run(word, 0, PATIENCE, DLOCK_MUTANTS_REACHED=reached.name)
            self.reached[word] = reached.read()
        self.seconds[word] = time.monotonic() - began
        if status == 0 and "0 tests from 0 test suites ran" not in output:
            return ""
        if status is None or status == 0 or not failed:
            del self.seconds[word]
            why = {None: f"runs longer than {PATIENCE} s", 0: "has no case"}
            return f"{word}: the whole program, which {why.get(status, f'ends with {status}')}"
        self.excluded[word] = sorted(set(failed))
        return f"{word}: {', '.join(self.excluded[word])}"

    def verdict(self, mutant):
        """Returns what killed the mutant; empty if it survived."""
        words = [word for word in tests_of(mutant.place.path)
                 if word in self.seconds and self.reached[word][mutant.number]]
        mutant.runs = len(words)
        for word in sorted(words, key=self.seconds.get):
            status, failed, _ = self.run(word, mutant.number, 30 + 3 * self.seconds[word])
            if status is None:
                return f"{word}: hangs"
            if status != 0:
                return f"{word}: {failed[0] if failed else f'ends with {status}'}"
        return ""


def report(mutant, status, detail=""):
    place = mutant.place
    print(f"{mutant.number:>4} {status:<9} {mutant.where} ({place.kind}) {detail}".rstrip(), flush=True)


def judge(mutants, tests, pool):
    """Runs the tests for each mutant; returns the survivors."""
    words = sorted({word for one in mutants for word in tests_of(one.place.path)})
    print(f"mutants: running {len(words)} tests without a mutant", file=sys.stderr, flush=True)
    for excluded in pool.map(tests.baseline, words):
        if excluded:
            print(f"excluded: {excluded} (fails without a mutant)", flush=True)
    survivors, runs = [], {pool.submit(tests.verdict, one): one for one in mutants}
    for run in concurrent.futures.as_completed(runs):
        killer = run.result()
        report(runs[run], "killed" if killer else "survived", killer)
        survivors += [] if killer else [runs[run]]
    return sorted(survivors, key=lambda one: one.number)


def main(count, seed, jobs, enough, only_list):
    """Returns the exit status."""
    seed = secrets.randbelow(10 ** 6) if seed is None else seed
    texts = read_sources()
    more = draw(texts, seed)
    mutants = [one for _, one in zip(range(count), more)]
    if len(mutants) < count:
        sys.exit(f"mutants: --random {count}: only {len(mutants)} lines can be mutated; lower N")
    print(f"{count} random mutants, --seed {seed}", flush=True)
    if only_list:
        for one in mutants:
            print(f"{one.number:>4} {one.where} ({one.place.kind})")
            print(f"       {one.original}\n     > {one.changed}")
        return 0
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            sys.exit(f"mutants: {tool} is missing; run ./scripts/build, which installs it")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    programs = Programs()
    build = Build(programs, texts)
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        with build.lock():
            mutants = build.usable(mutants, more, lambda one, error: report(one, "unusable", error))
            survivors = judge(mutants, Tests(programs, build.tree), pool)
    finally:
        programs.stop()
        pool.shutdown(cancel_futures=True)
    for one in survivors:
        print(f"\n{one.where} ({one.place.kind}) survived {one.runs} tests\n     {one.original}\n   > {one.changed}")
    killed = len(mutants) - len(survivors)
    share = 100 * killed / max(1, len(mutants))
    print(f"\n{killed} of {len(mutants)} killed ({share:.0f} %)")
    return 0 if share >= enough else 1
