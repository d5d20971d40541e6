#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the test labels that changed files reach, one per line: what `scripts/test --changed` runs.

    changed.py FILE...    paths below the project's root

A changed module reaches the unit tests of each module that may include it, by the list of allowed
includes (tests/unit/house/arrows.txt). A backend also reaches the contract suite on its store, and the
core the one on the memory store. A changed test reaches its own folder or tier.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDES = ROOT / "tests/unit/house/arrows.txt"
TIERS = ("live", "cost", "interop", "soak", "cli", "compare", "package", "simulation", "contract", "unit")
STORES = sorted(path.name for path in (ROOT / "backends").iterdir() if path.is_dir())


def read_includes():
    """The modules that each module may include."""
    includes = {}
    for line in INCLUDES.read_text().splitlines():
        if line and not line.startswith("#"):
            module, _, included = line.removeprefix("owed ").partition(":")
            includes.setdefault(module, set()).update(included.split())
    return includes


def expand(includes):
    """Replaces `*` by each store, on both sides."""
    every = {}
    for module, included in includes.items():
        for store in STORES if "*" in module else [""]:
            every.setdefault(module.replace("*", store), set()).update(
                one.replace("*", store) for one in included)
    return every


def module_of(path, modules):
    """The module of a file: the longest folder, or the folder's name as a file beside it."""
    at = pathlib.PurePosixPath(path).with_suffix("")
    while str(at) != ".":
        if str(at) in modules:
            return str(at)
        at = at.parent
    return None


def reached_modules(changed, includes):
    """`changed` and the modules that include them, directly or through others."""
    if any(one.startswith("include/") for one in changed):
        return set(includes)
    reached, left = set(changed), list(changed)
    while left:
        module = left.pop()
        for other, included in includes.items():
            if module in included and other not in reached:
                reached.add(other)
                left.append(other)
    return reached


def labels_of_module(module):
    top, _, below = module.partition("/")
    if top == "core":  # the manager's tests use the modules without a folder of tests
        folder = below if (ROOT / "tests/unit" / below).is_dir() else "manager"
    elif top == "backends":
        folder = below.split("/")[0]
    elif top in ("migration", "testing", "testkit"):
        folder = top
    else:
        return {"cli": {"cli"}, "program": {"cli"}, "compare": {"compare"}}.get(top, set())
    return {f"unit/{folder}"} if (ROOT / "tests/unit" / folder).is_dir() else set()


def labels(files):
    includes = expand(read_includes())
    changed, found = set(), set()
    for file in files:
        parts = pathlib.PurePosixPath(file).parts
        if parts[0] == "tests" and len(parts) > 2:
            if parts[1] == "unit" and len(parts) > 3:
                found.add("/".join(parts[1:3]))
            elif parts[1] in TIERS:
                found.add(parts[1])
        elif (module := module_of(file, includes)) is not None:
            changed.add(module)
            if module.startswith("backends/"):
                found.add(f"contract/{parts[1]}")
            elif module.startswith(("core", "include", "migration")):
                found.add("contract/memory")
    # The command and the comparison are reached by everything: their tests run for their own changes.
    programs = {module for module in changed if module.split("/")[0] in ("cli", "program", "compare")}
    for module in reached_modules(changed, includes):
        if module in programs or module.split("/")[0] not in ("cli", "program", "compare"):
            found |= labels_of_module(module)
    return found | {"unit/house"}


if __name__ == "__main__":
    print("\n".join(sorted(labels(sys.argv[1:]))))
