# SPDX-License-Identifier: Apache-2.0
"""A page's fenced blocks, and the commands in them."""

import re
from dataclasses import dataclass

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """What stands between two fences; `line` is that of its first line in the page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def first_line(self):
        return self.text.split("\n", 1)[0]


@dataclass(frozen=True)
class Command:
    """One command of a shell block, what the page says that it prints, and how it ends."""

    place: str
    text: str
    output: tuple
    status: int


def blocks_of(page, text):
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])
        for found in FENCE.finditer(text)
    ]


def status_of(line):
    """What a comment `# fails with 75` says; 0 without one."""
    said = re.search(r"#\s*fails with (\d+)", line)
    return int(said[1]) if said else 0


def without_comment(line):
    return re.sub(r"\s+#\s.*$", "", line).strip()


def commands_of(block):
    """`console`: `$ ` leads a command, all else is its output. `sh`: each line is a command."""
    commands = []
    prompt = "$ " if block.language == "console" else ""
    text = block.text.replace("\\\n", " ")
    for number, line in enumerate(text.splitlines()):
        if not line.startswith(prompt):
            commands[-1].output.append(line)
        elif without_comment(line) and not line.startswith("#"):
            command = without_comment(line[len(prompt) :])
            place = f"{block.page}:{block.line + number}"
            commands.append(Command(place, command, [], status_of(line)))
    return [Command(c.place, c.text, tuple(c.output), c.status) for c in commands]
