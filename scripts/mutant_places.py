# SPDX-License-Identifier: Apache-2.0
"""Finds the places for random mutants in the shipped C++ files, and writes the code with the switches."""
import bisect
import collections
import pathlib
import random
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("include", "core", "backends", "migration", "cli", "program", "compare", "testing")
KINDS = ("dropped call", "negated condition", "changed comparison", "off by one", "dropped else")
SWITCH = "dlock/detail/mutant_switch.hpp"
REACHED = 1 << 16  # size of the file with one byte per mutant: 1 if a test reached it
# Warnings in mutated files are not errors. The exception is a function that can end without its
# result: the compiler would assume that the mutant is never active.
SWITCH_TEXT = """\
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
""" + "".join(f'#pragma GCC diagnostic warning "-W{name}"\n'
              for name in ("all", "extra", "pedantic", "shadow", "conversion")) + """\
#pragma GCC diagnostic error "-Wreturn-type"
inline bool dlock_mutant(int number) noexcept {
  static const int active = [] {
    const char* const text = std::getenv("DLOCK_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  static char* const reached = [] {
    const char* const path = std::getenv("DLOCK_MUTANTS_REACHED");
    const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return static_cast<char*>(nullptr);
    void* const map = ::mmap(nullptr, @REACHED@, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return map == MAP_FAILED ? nullptr : static_cast<char*>(map);
  }();
  if (reached != nullptr && number < @REACHED@) reached[number] = 1;
  return number == active;
}
""".replace("@REACHED@", str(REACHED))

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


# A pause of 101 ms instead of 100 ms is not a mistake that a user or a test can observe. The bound
# of a comparison is exact: `lease < milliseconds(100)`.
DURATION, LONG = re.compile(r"(?<![<>=]) (?:\w+::)*(?:\w*seconds|minutes|hours)\($"), 64
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
                or before.endswith("<") or after[:1] == ">" or re.search(r"<\w[\w:, ]*$", before)
                or re.search(r"\bcase\b[^:]*$", before) or before.endswith("{")
                or (DURATION.search(before.replace(" = ", " : ")) and int(number) > LONG)):
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
