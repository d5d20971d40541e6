# SPDX-License-Identifier: Apache-2.0
"""Random mutants of the shipped sources. scripts/mutants --random runs them.

One build contains all mutants. The environment variable DLOCK_MUTANT holds the number of the active
mutant; 0 means none. Each mutant changes one line of a copy of the project, build/mutants/tree.
"""
import bisect
import collections
import concurrent.futures
import fcntl
import os
import pathlib
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("include", "core", "backends", "migration", "cli", "program", "compare", "testing")
KINDS = ("dropped call", "negated condition", "changed comparison", "off by one", "dropped else")
ROUNDS = 10  # builds, each without the mutants that did not compile before
SWITCH = "dlock/detail/mutant_switch.hpp"
# Warnings in mutated files are not errors. The exception is a function that can end without its
# result: the compiler would assume that the mutant is never active.
SWITCH_TEXT = """\
#pragma once
#include <cstdlib>
""" + "".join(f'#pragma GCC diagnostic warning "-W{name}"\n'
              for name in ("all", "extra", "pedantic", "shadow", "conversion")) + """\
#pragma GCC diagnostic error "-Wreturn-type"
inline bool dlock_mutant(int number) noexcept {
  static const int active = [] {
    const char* const text = std::getenv("DLOCK_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return number == active;
}
"""

# The tests of a module, cheapest tier first. The longest prefix of the path decides.
#   contract/STORE   the contract suite on this store
#   sim/STORE        runs of the simulation
#   cli              the quick cases of cli_test
MODULES = {
    "": "core_test config_test engine_test mutex_test contract/memory sim/local",
    "include/dlock/testing": "testing_test multi_test leader_test",
    "core/config": "config_test core_test engine_test contract/memory cli",
    "core/fencing": "core_test config_test fenced_register_test contract/memory contract/local cli",
    "core/leader": "leader_test contract/memory",
    "core/loop": "core_test driving_schedules_test async_test no_threads_test engine_test "
                 "mutex_test contract/memory sim/local",
    "core/manager": "config_test engine_test mutex_test async_test cache_test multi_test "
                    "no_threads_test contract/memory sim/local",
    "core/process": "core_test engine_test mutex_test contract/memory cli",
    "core/schedule": "schedule_test contract/memory",
    "core/semaphore": "engine_test contract/memory",
    "core/store": "core_test engine_test mutex_test cache_test async_test contract/memory "
                  "sim/local sim/redis",
    "migration": "core_test migration_test dual_test engine_test contract/memory",
    "backends": "core_test contract/memory contract/local contract/redis",
    "backends/local": "local_test local_power_cut_test contract/local sim/local",
    "backends/memory": "engine_test mutex_test contract/memory",
    "backends/redis": "redis_test contract/redis sim/redis",
    "backends/memcached": "memcached_test contract/memcached sim/memcached",
    "backends/zookeeper": "zookeeper_test zookeeper_client_test contract/zookeeper sim/zookeeper",
    "testing": "testing_test multi_test leader_test",
    "cli": "cli",
    "program": "cli",
    "compare": "compare_figures_test compare_names_test",
}
TIERS = ("contract/", "cli", "sim/")  # after the unit programs
CLI_CASES = ("CliAdoption*:CliBreak*:*CliConfig*:CliDoctor*:CliHelp*:CliList*:CliNested*:"
             "CliOutput*:CliQuiet*:CliRun.*:CliSemaphore*:CliShared*:CliStatus*:LossPolicy*")
SEEDS = 200  # per run of the simulation
PATIENCE = 900  # seconds for one test program without a mutant

Place = collections.namedtuple("Place", "kind path line begin end switched plain")


class Mutant:
    """A place and its number. `switched` marks the test of the switch with a zero byte."""

    def __init__(self, number, place, text):
        self.number, self.place = number, place
        self.where = f"{place.path}:{place.line}"
        begin = text.rfind("\n", 0, place.begin) + 1
        end = (text + "\n").index("\n", place.end)
        self.original = text[begin:end].strip()
        self.changed = (text[begin:place.begin] + place.plain + text[place.end:end]).strip()
        self.code = place.switched.replace("\0", f"dlock_mutant({number})")


# -- Reading C++ ------------------------------------------------------------------------------------

HIDDEN = re.compile(r'''//[^\n]*|/\*.*?\*/|R"(?P<end>[^()\\\s]*)\(.*?\)(?P=end)"|"(?:[^"\\\n]|\\.)*"|'''
                    r'''(?<!\w)'(?:[^'\\\n]|\\.)+'|^[ \t]*\#(?:[^\n\\]|\\.)*''', re.S | re.M)
FUNCTION = re.compile(r"\)\s*(?:(?:const|noexcept(?:\([^()]*\))?|override|final|try|&&?|"
                      r"->[\s\w:<>,&*]+|requires\b[^;]*)\s*)*$|"
                      r"\)\s*(?:noexcept\s*)?(?:try\s*)?:[^:].*[)}]\s*$", re.S)
BLOCK = re.compile(r"(?:[;{}:)\]]|\b(?:else|do|try|const|noexcept|mutable|override|final)|"
                   r"->\s*[\w:<>*&, ]+)\s*$")
FIXED = re.compile(r"\b(?:constexpr|consteval|static_assert|requires|noexcept\(|alignas|case)\b")
LOGS = re.compile(r"\b(?:log|log_thrown|warn_\w+)\(|\blog_?(?:->|\.)|\b(?:spdlog|logger|assert)\b|"
                  r"static_assert|\bDLOCK_\w+\(|\bBOOST_\w+\(")


def mask(text):
    """Returns text of the same length without comments, literals and preprocessor lines."""
    def blank(found):
        filler = " " if found[0].lstrip()[0] in "/#" else "s"
        body = re.sub(r"[^\n]", filler, found[0])
        return body if filler == " " else '"' + body[1:-1] + '"'
    return HIDDEN.sub(blank, text)


class Source:
    """The structure of one source file: bracket pairs, and the spans of code in functions."""

    def __init__(self, path, text):
        self.path, self.text, self.code = path, text, mask(text)
        self.match = {}
        self.steps, self.states = [0], [("", "outer")]  # (bracket, kind) from each position on
        self.starts = [0] + [at + 1 for at, c in enumerate(text) if c == "\n"]
        self.scan()

    def scan(self):
        stack, head = [("", "outer", 0, 0)], 0
        for found in re.finditer(r"[()\[\]{};]", self.code):
            at, c = found.start(), found[0]
            bracket, kind, opened, saved = stack[-1]
            if c == ";":
                head = head if bracket == "(" else at + 1
                continue
            if c in "([{":
                inner = (c, kind) if c != "{" else self.kind_of(self.code[head:at], kind)
                stack.append((*inner, at, head))
                head = at + 1
            elif len(stack) > 1:
                stack.pop()
                self.match[opened], self.match[at] = at, opened
                is_block = c == "}" and bracket == "{" and kind != "init" and stack[-1][0] != "("
                head = at + 1 if is_block else saved
            self.steps.append(at + (c in "([{"))
            self.states.append(stack[-1][:2])

    @staticmethod
    def kind_of(header, outside):
        """Returns the bracket and the kind of the `{` after `header`: `i` begins a braced value."""
        block = "{" if BLOCK.search(header) or not header.strip() else "i"
        if outside in ("fixed", "init"):
            return block, outside
        if re.search(r"\b(constexpr|consteval|enum)\b", header.replace("if constexpr", "if")):
            return "{", "fixed"
        if re.search(r"\b(class|struct|union)\b[^()=;]*$", header):
            return "{", "type"
        if outside == "function":
            return block, "function"
        if re.search(r"\bnamespace\b|\bextern \"", header):
            return "{", "outer"
        return ("{", "function") if FUNCTION.search(header) else ("i", "init")

    def bracket(self, at):
        """Returns the innermost open bracket at `at`; empty outside of functions."""
        bracket, kind = self.states[bisect.bisect_right(self.steps, at) - 1]
        return bracket if kind == "function" else ""

    def statement(self, at):
        begin = max(self.code.rfind(c, 0, at) for c in ";{}") + 1
        ends = [end for end in (self.code.find(c, at) for c in ";{}") if end >= 0]
        return self.code[begin:min(ends, default=len(self.code))]

    def same_line(self, begin, end):
        return "\n" not in self.text[begin:end]

    def place(self, kind, begin, end, switched, plain):
        return Place(kind, self.path, bisect.bisect_right(self.starts, begin), begin, end,
                     switched, plain)


# -- Places for mutants -----------------------------------------------------------------------------

CALL = re.compile(r"(?:(?<=[;{}:)] )|(?<=else )|(?<=^)|(?<=\n))[ ]*((?:co_await )?(?:::)?[A-Za-z_]\w*)")
NO_CALL = re.compile(r"(?:return|co_return|if|while|for|switch|throw|delete|catch|else|do|case|goto|"
                     r"sizeof|super|using|(?:static|const|dynamic|reinterpret)_cast)$")
UNSEEN = re.compile(r"\b(?:reserve|shrink_to_fit|swap_memory)\($|std::ignore")


def calls(source):
    code = source.code
    for found in CALL.finditer(code):
        begin = found.start(1)
        if source.bracket(begin) != "{" or NO_CALL.match(found[1]) or not begins(source, begin):
            continue
        end, last = found.end(), ""
        while end < len(code) and code[end] not in ";":
            step = re.compile(r"\w+|::|\.|->|<[\w:,<>* ]*>(?=[(:{])").match(code, end)
            if step:
                end = step.end()
            elif code[end] in "([" and end in source.match:
                last, end = code[:end + 1][-20:], source.match[end] + 1
            else:
                break
        statement = code[begin:end]
        if code[end:end + 1] != ";" or not statement.endswith(")") or UNSEEN.search(last):
            continue
        if source.same_line(begin, end) and not LOGS.search(statement.split("(")[0] + "("):
            call = source.text[begin:end + 1]
            yield source.place(KINDS[0], begin, end + 1, f"{{ if (!\0) {call} }}", ";")


def begins(source, at):
    """Returns whether a statement begins at `at`."""
    before = source.code[:at].rstrip()[-200:]
    if before.endswith(")"):
        opened = source.match.get(source.code.rindex(")", 0, at), 0)
        return re.search(r"\b(if|while|for|if constexpr)\s*$", source.code[max(0, opened - 20):opened])
    return re.search(r"[;{}]$|\belse$|\b(case\b[^;{}?]*|default\s*):$|\]\]$", before)


def conditions(source):
    for found in re.finditer(r"\b(?:if|while) \(", source.code):
        end = source.match.get(found.end() - 1, 0)
        if source.bracket(found.start()) != "{" or not source.same_line(found.start(), end):
            continue
        begin = max(found.end(), source.code.rfind(";", found.end(), end) + 1)
        begin += len(source.code[begin:end]) - len(source.code[begin:end].lstrip())
        code = source.code[begin:end]
        if not code or code == "true" or re.search(r"(?<![=!<>])=(?!=)|\bco_await\b|[{}]", code):
            continue
        condition = source.text[begin:end]
        yield source.place(KINDS[1], begin, end, f"\0 != static_cast<bool>({condition})",
                           f"!({condition})")


COMPARED = {"<": "<=", ">": ">=", "<=": "<", ">=": ">", "==": "!=", "!=": "=="}


def comparisons(source):
    for found in re.finditer(r" (<=|>=|<|>|==|!=) ", source.code):
        if not source.bracket(found.start()):
            continue
        statement = source.statement(found.start())
        if FIXED.search(statement) or "co_await" in statement or LOGS.search(statement):
            continue
        begin, end = left_end(source, found.start()), right_end(source, found.end())
        if begin is None or end is None or not source.same_line(begin, end):
            continue
        text, operator = source.text, found[1]
        changed = (text[begin:found.start(1)] + COMPARED[operator] + text[found.end(1):end])
        yield source.place(KINDS[2], begin, end, f"(\0 ? ({changed}) : ({text[begin:end]}))", changed)


def left_end(source, at):
    """Returns the start of the operand that ends at `at`; None if this line does not contain it."""
    code, line = source.code, source.code.rfind("\n", 0, at) + 1
    while at > line:
        c, two = code[at - 1], code[at - 2:at]
        if c in ")]}" or (c == ">" and two not in ("->", " >")):
            opened = source.match.get(at - 1) if c != ">" else angle(code, at - 1)
            if opened is None or opened < line:
                return None
            if re.search(r"\b(if|while|for|switch) $", code[max(0, opened - 8):opened]):
                break
            at = opened
        elif two == "::":
            at -= 2
        elif c in "([{;,?:=" or two in ("&&", "||"):
            break
        elif c in "<|^" or (c == "&" and code[at:at + 1] == " ") or two == " >":
            return None
        elif re.search(r"\b(return|co_return|else|throw|case|operator)$", code[max(0, at - 10):at]):
            break
        else:
            at -= 1
    if at == line and not re.search(r"(?:[(\[{;,?:=]|&&|\|\||return)$", code[:at].rstrip()[-10:]):
        return None
    return at + len(code[at:]) - len(code[at:].lstrip(" "))


def angle(code, at):
    """Returns the position of the `<` that belongs to the `>` at `at`, on the same line."""
    depth = 0
    while at >= 0 and code[at] not in "\n;":
        depth += (code[at] == ">" and code[at - 1] != "-") - (code[at] == "<")
        if depth == 0:
            return at
        at -= 1
    return None


def right_end(source, at):
    """Returns the end of the operand that begins at `at`; None if this line does not contain it."""
    code = source.code
    while code[at:at + 1] not in ("", "\n"):
        c, two = code[at], code[at:at + 2]
        if c in "([{":
            at = source.match.get(at, -1) + 1
            if not at:
                return None
        elif two in ("::", "->"):
            at += 2
        elif c in ")]},;?:" or two in ("&&", "||"):
            return len(code[:at].rstrip())
        elif c == "<" and re.match(r"<[\w:,<>* ]*>(?=[(:{])", code[at:at + 80]):
            at += len(re.match(r"<[\w:,<>* ]*>(?=[(:{])", code[at:at + 80])[0])
        elif c in "<>=!|^&" and code[at + 1:at + 2] in (" ", "=", "<", ">"):
            return None
        else:
            at += 1
    follows = re.match(r"\s*(?:&&|\|\||[?:)])", code[at:at + 200])
    return len(code[:at].rstrip()) if follows else None


NUMBER = re.compile(r"(?<![\w.'])(\d[\d']*)([uUlL]{0,3})(?![\w.'])")


def literals(source):
    code = source.code
    for found in NUMBER.finditer(code):
        begin, end, number = found.start(), found.end(), found[1].replace("'", "")
        if source.bracket(begin) not in ("{", "(", "[") or (number[0] == "0" and len(number) > 1):
            continue
        statement = source.statement(begin)
        before, after = code[max(0, begin - 60):begin].rsplit("\n", 1)[-1], code[end:end + 2]
        is_size = re.search(r"(?:\bnew\s|[\w>*&]\s)[\w:]*\[$", before) and not re.search(
            r"\b(return|co_return|case)\s[\w:]*\[$", before)
        if (FIXED.search(statement) or LOGS.search(statement) or "co_await" in statement or is_size
                or before.endswith("<") or after[:1] == ">" or re.search(r"<[\w:, ]*$", before)
                or re.search(r"\bcase\b[^:]*$", before) or before.endswith("{")):
            continue
        other = 0 if number == "1" and re.search(r"[\w)\]] ?[+-] $", before) else int(number) + 1
        changed = f"{other}{found[2]}"
        yield source.place(KINDS[3], begin, end, f"(\0 ? {changed} : {source.text[begin:end]})",
                           changed)


def elses(source):
    code = source.code
    for found in re.finditer(r"\belse (?!if\b)", code):
        begin, after = found.span()
        if source.bracket(begin) != "{":
            continue
        before = len(code[:begin].rstrip()) - 1
        first = source.match.get(before, before) if code[before] == "}" else before
        if "constexpr" in source.statement(first) or "constexpr" in source.statement(first - 1):
            continue
        if code[after] == "{":
            end = source.match.get(after)
            if end is not None and not re.match(r"\s*else\b", code[end + 1:end + 100]):
                yield source.place(KINDS[4], begin, after + 1, "else if (!\0) {", "else if (false) {")
            continue
        end = after
        while end < len(code) and code[end] not in ";\n{}":
            end = source.match.get(end, end) + 1
        if code[end:end + 1] == ";" and not re.match(r"\s*else\b", code[end + 1:end + 100]):
            branch = source.text[after:end + 1]
            yield source.place(KINDS[4], begin, end + 1, f"else {{ if (!\0) {branch} }}", "else ;")


def places_of(path, text):
    source = Source(path, text)
    return [place for find in (calls, conditions, comparisons, literals, elses) for place in find(source)]


def read_sources():
    """Returns the texts of all shipped C++ files, by path."""
    names = git_files(*FOLDERS)
    return {name: (ROOT / name).read_text() for name in names if name.endswith((".cpp", ".hpp"))}


def git_files(*folders):
    command = ["git", "-C", str(ROOT), "ls-files", "-coz", "--exclude-standard", "--", *folders]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in set(listed.split("\0")) if name and (ROOT / name).is_file())


def draw(texts, seed):
    """Yields mutants in random order, at most one per line. The kind is drawn before the place."""
    chance, taken, number = random.Random(seed), set(), 0
    left = {kind: [] for kind in KINDS}
    for path in sorted(texts):
        for place in places_of(path, texts[path]):
            left[place.kind].append(place)
    while any(left.values()):
        places = left[chance.choice([kind for kind in KINDS if left[kind]])]
        place = places.pop(chance.randrange(len(places)))
        if (place.path, place.line) not in taken:
            taken.add((place.path, place.line))
            number += 1
            yield Mutant(number, place, texts[place.path])


def switched(text, mutants):
    """Returns the text with these mutants, each behind its number. Lines keep their numbers."""
    for mutant in sorted(mutants, key=lambda one: one.place.begin, reverse=True):
        text = text[:mutant.place.begin] + mutant.code + text[mutant.place.end:]
    return f'#include "{SWITCH}"\n#line 1\n{text}'


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
        if not (self.tree / "build/build.ninja").exists():
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

    def nearest(path, number):  # before the end of a function without its result, for instance
        here = [one for one in mutants if one.place.path == path]
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
                for mutant in nearest(*place) if search == "nearest" else filter(None, [at_line.get(place)]):
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
        return "dlock-sim", None, ["--store", word.split("/")[1], "--mode", "exclusive",
                                   "--seeds", str(SEEDS), "--jobs", "1"]
    return ("cli_test", CLI_CASES, []) if word == "cli" else (word, "*", [])


class Tests:
    """Runs tests. A case that fails without a mutant is excluded."""

    def __init__(self, programs, build):
        self.programs, self.folder = programs, build / "build"
        self.excluded, self.seconds = {}, {}

    def run(self, word, number, patience):
        program, cases, arguments = run_of(word)
        path = self.folder / ("bin" if program == "dlock-sim" else "tests") / program
        words = [str(path), *arguments]
        if cases:
            without = ":".join(self.excluded.get(word, []))
            words += ["--gtest_brief=1", f"--gtest_filter={cases}" + (f"-{without}" if without else "")]
            words += ["--gtest_fail_fast"] if number else []
        status, output = self.programs.run(words, number, patience)
        return status, re.findall(r"^\[  FAILED  \] ([^\s,]+)", output, re.M), output

    def baseline(self, word):
        """Runs the test without a mutant; returns what is excluded, in words."""
        began = time.monotonic()
        status, failed, output = self.run(word, 0, PATIENCE)
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
        words = [word for word in tests_of(mutant.place.path) if word in self.seconds]
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
        print(f"\n{one.where} ({one.place.kind}) survived\n     {one.original}\n   > {one.changed}")
    killed = len(mutants) - len(survivors)
    share = 100 * killed / len(mutants)
    print(f"\n{killed} of {len(mutants)} killed ({share:.0f} %)")
    return 0 if share >= enough else 1
