# SPDX-License-Identifier: Apache-2.0
#
# Edits: mistakes to be made in a copy of the sources, as text. One is a head of `key: value` lines,
# and then sections:
#
#   --- replace PATH             what stands there ...
#   --- by                       ... and what stands there instead
#   --- before PATH, --- after PATH, and then --- insert
#   --- script PATH NAME         as replace, within the raw string that NAME is made of
#
# A file is one edit, named as the file is; or many, each after a line `=== NAME`.
#
# The text after `replace`, `before`, `after` and `script` is an anchor: whole lines, or a part of
# one. It has to be there exactly once: who changes such a place says where the mistake belongs now.
import pathlib
import re


class EditError(Exception):
    """What is wrong, with the file and line, and what to do about it."""


class Section:
    def __init__(self, where, verb, path, name):
        self.where = where  # "file:line"
        self.verb = verb
        self.path = path
        self.name = name  # of the raw string; empty: none
        self.anchor = ""
        self.text = ""

    def span(self, source):
        """Where it applies: from, to, and what comes there."""
        begin, end = 0, len(source)
        if self.verb == "script":
            begin, end = raw_string(source, self.name, self)
        first = source.find(self.anchor, begin, end)
        if first < 0 or source.find(self.anchor, first + 1, end) >= 0:
            times = "is not" if first < 0 else "stands more than once"
            raise EditError(
                f"{self.where}: this {times} in {self.path}{' ' + self.name if self.name else ''}; "
                f"write what has to be mistaken there now:\n{self.anchor}"
            )
        last = first + len(self.anchor)
        if self.verb == "before":
            return first, first, self.text
        if self.verb == "after":
            return last, last, self.text
        return first, last, self.text


def raw_string(source, name, section):
    found = re.search(rf'\b{name} = R"(\w*)\(', source)
    if not found:
        raise EditError(f"{section.where}: no raw string {name} in {section.path}")
    return found.end(), source.index(")" + found[1] + '"', found.end())


class Edit:
    """One mistake."""

    def __init__(self, path, name, lines, first=1):
        self.path = pathlib.Path(path)
        self.name = name
        self.head = {}
        self.sections = []
        self._read(lines, first)

    def _read(self, lines, first):
        current, part = None, None
        parts = {}
        for number, line in enumerate(lines, first):
            where = f"{self.path}:{number}"
            words = line.split()
            if line.startswith("--- "):
                verb = words[1]
                if verb in ("replace", "before", "after", "script"):
                    if len(words) != (4 if verb == "script" else 3):
                        raise EditError(f"{where}: write `--- {verb} PATH` (script: and its name)")
                    current = Section(where, verb, words[2], words[3] if verb == "script" else "")
                    self.sections.append(current)
                    part = parts.setdefault((current, "anchor"), [])
                elif verb in ("by", "insert") and current:
                    part = parts.setdefault((current, "text"), [])
                else:
                    raise EditError(f"{where}: '{line}' is no section that is known")
            elif part is not None:
                part.append(line)
            elif line and not line.startswith("#"):
                key, colon, value = line.partition(": ")
                if not colon:
                    raise EditError(f"{where}: write `key: value`, or begin a section with ---")
                self.head.setdefault(key, []).append(value)
        for (section, which), lines in parts.items():
            # What replaces may stand within a line; what is inserted is lines.
            end = "" if section.verb in ("replace", "script") else "\n"
            setattr(section, which, "\n".join(lines).strip("\n") + end)
            if which == "anchor" and not section.anchor.strip():
                raise EditError(f"{section.where}: the anchor is empty")

    def one(self, key):
        values = self.head.get(key, [])
        if len(values) != 1:
            raise EditError(f"{self.path}: write one line `{key}: ...`")
        return values[0]

    def paths(self):
        return sorted({section.path for section in self.sections})


def read_file(path):
    lines = pathlib.Path(path).read_text().split("\n")
    starts = [at for at, line in enumerate(lines) if line.startswith("=== ")]
    if not starts:
        return [Edit(path, pathlib.Path(path).stem, lines)]
    ends = starts[1:] + [len(lines)]
    return [Edit(path, lines[at][4:].strip(), lines[at + 1 : end], at + 2)
            for at, end in zip(starts, ends)]


def read_all(files):
    edits = [edit for path in files for edit in read_file(path)]
    names = [edit.name for edit in edits]
    for edit in edits:
        if names.count(edit.name) > 1:
            raise EditError(f"{edit.path}: another edit is called {edit.name}, too")
    return edits


def apply(source, spans):
    """`spans`: (from, to, text, where). The source with all of them; they must not overlap."""
    out, at, last = [], 0, ""
    for begin, end, text, where in sorted(spans, key=lambda span: (span[0], span[1])):
        if begin < at:
            raise EditError(f"{where}: changes the same text as {last}; anchor one of them elsewhere")
        out += [source[at:begin], text]
        at, last = end, where
    return "".join(out) + source[at:]
