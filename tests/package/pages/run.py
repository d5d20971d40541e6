# SPDX-License-Identifier: Apache-2.0
"""Runs every block of the pages as it stands there, with what is installed.

Each page has a folder and an environment of its own, as a reader has; its blocks are done in its
order. What a block needs beside is in table.py and scenes.py. A block that is neither run nor
excused there fails, and so does a line of table.py that no block needs any more.

  sh, console   each command by itself; `export` holds for those that follow, `# fails with N` behind
                it is its exit status. Below a command of `console` stands what it prints
  yaml          `dlock doctor` takes it, and reaches its stores. Indented lines are entries of
                `stores:`, each by itself
  cpp           all fragments of all pages are one program: fragments.py
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import time
import traceback

import blocks
import fragments
import scenes
import surroundings
import table
from page import Page


class Report:
    """Tells what is done, while it is done, and what came of it."""

    def __init__(self):
        self.run = self.failed = self.not_run = 0
        self._used = set()

    def excuse(self, kind, page, text):
        """What `kind` of table.py says of it; None if it says nothing."""
        if (page, text) not in kind:
            return None
        self._used.add((page, text))
        return kind[page, text]

    def attempt(self, place, what, work):
        print(f"run      {place}: {what}", flush=True)
        self.run += 1
        began = time.monotonic()
        try:
            work()
        except Exception:  # whatever it is, the other blocks have their turn
            self.failed += 1
            print(f"FAILED   {place}: {traceback.format_exc()}", flush=True)
        print(f"         {time.monotonic() - began:.1f} s", flush=True)

    def leave_out(self, place, what, reason):
        print(f"not run  {place}: {what}: {reason}", flush=True)
        self.not_run += 1

    def fail(self, what):
        self.failed += 1
        print(f"FAILED   {what}", flush=True)

    def close(self):
        for kind in (table.SHORTENED, table.INTERRUPTED, table.NOT_RUN):
            for page, text in kind:
                if (page, text) not in self._used:
                    self.fail(f"table.py names what is not in {page} any more: {text}")
        print(f"{self.run} run, {self.not_run} not run, {self.failed} failed")
        return 1 if self.failed else 0


def do_command(page, command, report):
    reason = report.excuse(table.NOT_RUN, page.name, command.text)
    if reason:
        report.leave_out(command.place, command.text, reason)
        return
    text = command.text
    if more := report.excuse(table.SHORTENED, page.name, command.text):
        text += f" {more}"

    def work():
        if report.excuse(table.INTERRUPTED, page.name, command.text):
            scenes.interrupted(page, text)
            return
        said, _ = page.finish(text, command.status)
        if command.output:
            scenes.expect_shape(said, "\n".join(command.output))

    report.attempt(command.place, text, work)


def do_block(page, block, report):
    scene = scenes.scene_of(block)
    reason = report.excuse(table.NOT_RUN, page.name, block.first_line)
    if scene:
        report.attempt(block.place, block.first_line, lambda: scene(page, block))
    elif block.language in ("sh", "console"):
        for command in blocks.commands_of(block):
            do_command(page, command, report)
    elif reason:
        report.leave_out(block.place, block.first_line, reason)
    else:
        report.fail(f"{block.place}: nobody knows how to run this block: {block.first_line}")


def do_fragments(pages, options, report):
    """All C++ of the pages: built with the package as a user does, and run."""
    folder = options.work / "fragments"
    folder.mkdir()
    (folder / "fragments.cpp").write_text(fragments.program(pages))
    project = pathlib.Path(__file__).parent / "project"
    configure = ["cmake", "-G", "Ninja", "-S", project, "-B", folder / "build"]
    configure += [f"-DCMAKE_PREFIX_PATH={options.installed}", f"-DCMAKE_CXX_COMPILER={options.cxx}"]
    configure += [f"-DCMAKE_CXX_COMPILER_LAUNCHER={options.launcher}", f"-DFRAGMENTS={folder}"]

    def work():
        for command in (configure, ["cmake", "--build", folder / "build"]):
            subprocess.run(command, check=True)
        subprocess.run([folder / "build/fragments"], check=True, timeout=60)

    places = [block.place for _, found in pages for block in found]
    report.attempt(", ".join(places), "built and run", work)
    report.run += len(places) - 1


def do_pages(options, servers, report):
    values = {kind: link.address for kind, link in servers.links.items()}
    values["shop"] = surroundings.start_shop()
    with_fragments = []
    for name in table.PAGES:
        folder = options.work / name.replace("/", "_")
        folder.mkdir()
        path = str(options.installed / "bin")
        page = Page(name, options.source, folder, path, values, servers.links)
        found = blocks.blocks_of(name, page.text)
        cpp = [block for block in found if block.language == "cpp"]
        for block in found:
            if block not in cpp:
                do_block(page, block, report)
        if cpp:
            with_fragments.append((page, cpp))
    do_fragments(with_fragments, options, report)


def main():
    parser = argparse.ArgumentParser()
    for option in ("source", "installed", "work", "servers"):
        parser.add_argument(f"--{option}", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--launcher", default="")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    report = Report()
    with surroundings.Servers(options.servers, options.work / "servers") as servers:
        do_pages(options, servers, report)
    return report.close()


sys.exit(main())
