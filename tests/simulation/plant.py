#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The planted defects (*/defects/*.edit): lists them for the build, and makes the copies of the sources
# that have them in. In a copy `PLANTED` means that this edit's defect is switched on.
#
# The head of such a file: `what:` the mistake; `found:` how it has to be found, once or more:
#   chance N [from S] [in MODE]  by N random runs at most, of the core or of its store; from S on it
#                      is soon; in that mode of dlock-sim alone, `pairs`: several locks on two stores
#   scenario           by a chosen course of events
#   move|leased N [seed S]          by N runs of a fleet in that mode at most; S is one that shows it
# One without sections is a mistake of a simulated server, which asks is_planted().
import argparse
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "testkit"))
import edits  # noqa: E402

FOUND = re.compile(r"(?:(chance) (\d+)(?: from (\d+))?(?: in ([\w-]+))?|(scenario)|(move|leased) (\d+)(?: seed (\d+))?)$")
Way = collections.namedtuple("Way", "how most seed mode")


def ways(defect):
    all_ways = []
    for value in defect.head.get("found", []):
        match = FOUND.match(value)
        if not match:
            raise edits.EditError(f"{defect.path}: `found: {value}`; write `chance N [from S] [in MODE]`, "
                                  "`scenario`, or `move|leased N [seed S]`")
        how = match[1] or match[5] or match[6]
        all_ways.append(Way(how, int(match[2] or match[7] or 0), int(match[3] or match[8] or 0),
                            match[4] or ""))
    if not all_ways:
        raise edits.EditError(f"{defect.path}: write `found:`, how it has to come to light")
    return all_ways


def read_defects():
    return edits.read_all(sorted((ROOT / "tests/simulation").glob("*/defects/*.edit")))


def entry(defect, store, seed, mode=""):
    words = [json.dumps(word) for word in (defect.name, defect.one("what"), store)]
    return "      " + "{" + ", ".join([*words, str(seed), json.dumps(mode)]) + "},\n"


def table(function, entries):
    return (f"std::vector<Defect> {function}() {{\n  return {{\n{''.join(entries)}  }};\n}}\n\n")


def write_if_new(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def configure(out, stores):
    """Writes the file that CMake includes, and the lists that are compiled in."""
    out.mkdir(parents=True, exist_ok=True)
    defects = read_defects()
    lists, tests = collections.defaultdict(list), []
    for defect in defects:
        room = defect.path.parts[-3]
        if room not in ("core", "migration", *stores):
            continue
        for way in ways(defect):
            if way.how in ("chance", "scenario"):
                lists["all_defects"].append(entry(defect, "any" if room == "core" else room, 0,
                                                  way.mode))
                tests.append((defect.name, "", way.most, way.seed or 1))
            else:
                lists[way.how + "_defects"].append(entry(defect, "any", way.seed))
                tests.append((defect.name, way.how, way.most, 1))
    head = ("// SPDX-License-Identifier: Apache-2.0\n//\n// Generated from */defects/*.edit.\n"
            '#include "tests/simulation/defects.hpp"\n\nnamespace dlock::simulation {\n\n')
    names = ["all_defects"], ["move_defects", "leased_defects"]
    for file, functions in zip(("defects.cpp", "migration_defects.cpp"), names):
        body = "".join(table(name, lists[name]) for name in functions)
        write_if_new(out / file, head + body + "}  // namespace dlock::simulation\n")
    by_source = collections.defaultdict(list)
    for defect in defects:
        for path in defect.paths():
            by_source[path].append(str(defect.path))
    text = f"set(dlock_defect_sources {' '.join(sorted(by_source))})\n"
    for path, files in sorted(by_source.items()):
        text += f"set(dlock_defects_of_{re.sub('[^a-z0-9]', '_', path)} {' '.join(files)})\n"
    text += "set(dlock_defect_tests\n"
    text += "".join(f'  "{name}|{how}|{most}|{first}"\n' for name, how, most, first in tests) + ")\n"
    write_if_new(out / "defects.cmake", text)


def copy(source, out):
    """The source, with every defect that it can have, each behind its switch."""
    text = (ROOT / source).read_text()
    spans, scripts = [], collections.defaultdict(list)
    for defect in read_defects():
        for section in defect.sections:
            if section.path != source:
                continue
            begin, end, new = section.span(text)
            if section.verb == "script":
                scripts[section.name].append((begin, end, new, defect.name, section))
                continue
            switched = re.sub(r"\bPLANTED\b", f'::dlock::simulation::is_planted("{defect.name}")', new)
            if switched == new:
                raise edits.EditError(f"{section.where}: nothing says PLANTED")
            spans.append((begin, end, switched, section.where))
    for name, planted in scripts.items():
        spans.append(choice_of_scripts(text, name, planted))
    # A source without them has pieces of what another keeps.
    if scripts and "Scripts::Scripts" in text:
        spans.append(scripts_of_each_defect(text, source))
    out.parent.mkdir(parents=True, exist_ok=True)
    head = "#include <map>\n#include <string>\n\n" if scripts else ""
    head += '#include "tests/simulation/planted.hpp"\n'
    out.write_text(head + edits.apply(text, spans))


def choice_of_scripts(text, name, planted):
    """After the definition of NAME: what stands for it from there on, whichever defect is in."""
    begin, end = edits.raw_string(text, name, planted[0][4])
    after = text.index("\n", end) + 1
    choices = ""
    for first, last, new, defect, _ in planted:
        mistaken = text[begin:first] + new + text[last:end]
        choices += (f'  if (::dlock::simulation::is_planted("{defect}")) return R"lua({mistaken})lua";\n')
    chosen = (f"std::string_view planted_{name}() {{\n{choices}  return {name};\n}}\n"
              f"#define {name} planted_{name}()\n")
    return after, after, chosen, planted[0][4].where


# Made once, and kept, in the shipped source.
KEPT = re.compile(r"  static const auto& all = \*new (\w+);\n")


def scripts_of_each_defect(text, source):
    kept = KEPT.search(text)
    if not kept:
        raise edits.EditError(f"{__file__}: {source} keeps its scripts in another way; see KEPT")
    return kept.start(), kept.end(), f"""\
  static thread_local std::map<std::string, const {kept[1]}*> known;
  auto& mine = known[std::string(::dlock::simulation::planted_defect)];
  if (mine == nullptr) mine = new {kept[1]};
  const auto& all = *mine;
""", source


def main():
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("configure")
    one.add_argument("out", type=pathlib.Path)
    one.add_argument("stores", nargs="*")
    one = verbs.add_parser("copy")
    one.add_argument("source")
    one.add_argument("out", type=pathlib.Path)
    asked = parser.parse_args()
    try:
        if asked.verb == "configure":
            configure(asked.out, asked.stores)
        else:
            copy(asked.source, asked.out)
    except edits.EditError as error:
        sys.exit(f"plant: {error}")


if __name__ == "__main__":
    main()
