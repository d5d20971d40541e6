# SPDX-License-Identifier: Apache-2.0
"""Blocks that take more than a command: output that something has to happen for, and data."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess

CONFIGURED = "dlock --config dlock.yaml"


def shape(line):
    """A line without what differs from run to run: numbers, ids, hosts."""
    line = re.sub(r"0x[0-9a-f]+", "0x0", line)
    line = re.sub(r'"(id|host)":"[^"]*"', r'"\1":""', line)
    return re.sub(r"\d+", "0", line)


def expect_shape(said, written):
    said, written = said.rstrip("\n"), written.rstrip("\n")
    if shape(said) != shape(written):
        raise AssertionError(f"it says\n  {said}\nand the page\n  {written}")


def hold(page, block):
    """`dlock hold`: the store does not answer for a while, and answers again."""
    command, *events = block.text.splitlines()
    link = page.links["zookeeper"]
    with page.start(command.removeprefix("$ ")) as process:
        for written in events:
            event = json.loads(written)["event"]
            if event == "released":
                process.stdin.close()
            with link.cut() if event == "suspect" else contextlib.nullcontext():
                expect_shape(process.stdout.readline(), written)


def ending(page, block):
    """`dlock run`: the store does not answer any more."""
    link = page.links["redis"]
    store = f"dlock -q --store 'redis://{page.values['redis']}/0?lease=4s'"
    for option, written in zip(("", "--json"), block.text.splitlines()):
        command = f"{store} run orders/42 {option} -- sh -c 'echo held; exec sleep 60'"
        with page.start(command, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            with link.cut():
                expect_shape(process.stderr.readline(), written)
            assert process.wait() == 76


def status(page, block):
    """`dlock status --json` of a lock that is held."""
    with page.start(f"{CONFIGURED} hold orders/42") as process:
        process.stdout.readline()
        said, _ = page.finish(f"{CONFIGURED} status orders/42 --json")
        expect_shape(said, re.sub(r"\n\s*", "", block.text))
        process.stdin.close()


def semaphore(page, block):
    """`dlock semaphore show --json` of one with two of three permits in use, and one who waits for two."""
    dlock = f"{CONFIGURED} hold printers --permits 2 --of 3"
    with page.start(dlock) as holder, page.start(dlock) as waiter:
        holder.stdout.readline()
        while True:
            said, _ = page.finish(f"{CONFIGURED} semaphore show printers --json")
            if json.loads(said)["waiting"]:
                break
        expect_shape(said, re.sub(r"\n\s*", "", block.text))
        holder.stdin.close()
        waiter.stdout.readline()
        waiter.stdin.close()


def synopsis(page, block):
    """The options that it names are those of the command."""
    said, _ = page.finish("dlock help")
    options = said.split("Options:\n")[1].split("\n\n")[0]
    known = set(re.findall(r"--[a-z]+", options)) - {"--help", "--version"}
    named = set(re.findall(r"-[-a-z]+", block.text.replace("-q", "--quiet")))
    assert named == known, f"the page has {named}, `dlock help` {known}"


def urls(page, block):
    for url in block.text.split():
        page.finish(f"dlock --store '{url}' doctor")


def mistyped(page, block):
    """The page's first file, with its first key that is mistyped as the message says."""
    file = page.text.split("```yaml\n", 1)[1].split("```", 1)[0]
    page.write("dlock.yaml", file.replace("session_timeout", "session_timout"))
    _, said = page.finish(f"{CONFIGURED} doctor", 78)
    assert said == block.text, f"it says\n  {said}and the page\n  {block.text}"


def sequencer(page, block):
    said, _ = page.finish(f"{CONFIGURED} run orders/42 -- printenv DLOCK_SEQUENCER")
    expect_shape(said, block.text)


TOKENS = ((17, 1), (17, 1), (16, 0))  # the highest, again, a late one: how many are written


def sql(page, block):
    """In one database; the update has a row that is there."""
    database = page.kept.setdefault("database", sqlite3.connect(":memory:"))
    verb = block.text.split()[0]
    if verb == "CREATE":
        database.execute(block.text)
        return
    if verb == "UPDATE":
        database.execute("INSERT INTO orders (id, content) VALUES (1, '')")
    for token, written in TOKENS:
        values = {"id": 1, "name": "orders/42", "content": "shipped", "token": token}
        changed = database.execute(block.text, values).rowcount
        assert changed == written, f"{changed} rows changed by token {token}"


def lua(page, block):
    port = page.values["redis"].split(":")[1]
    for token, written in TOKENS:
        command = ["redis-cli", "-p", port, "EVAL", block.text, "1", "order", str(token), "shipped"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert said == f"{written}\n", said


def interrupted(page, command):
    """`dlock compare`, until it has begun to measure."""
    with page.start(command, stderr=subprocess.PIPE) as process:
        lines = []
        while not any(" 0 %" in line for line in lines[-1:]):
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
        assert process.returncode == 128 + signal.SIGINT


def yaml(page, block):
    """A file; or, indented, entries of `stores:`, each by itself."""
    files = [block.text]
    if block.text.startswith(" "):
        files = ["stores:\n" + line for line in block.text.splitlines()]
    for file in files:
        page.write("dlock.yaml", page.fill_in(file))
        page.finish(f"{CONFIGURED} doctor")


LANGUAGES = {"sql": sql, "lua": lua, "yaml": yaml}

# (page, beginning of a block) -> what is done with it.
SCENES = {
    ("docs/cli.md", "dlock [--config"): synopsis,
    ("docs/cli.md", "dlock: the lock orders/42"): ending,
    ("docs/cli.md", f"$ {CONFIGURED} hold"): hold,
    ("docs/cli.md", '{"name":"orders/42"'): status,
    ("docs/cli.md", '{"name":"printers"'): semaphore,
    ("docs/configuration.md", "zookeeper://"): urls,
    ("docs/configuration.md", "dlock: dlock.yaml:"): mistyped,
    ("docs/fencing.md", "dlock1:exclusive:"): sequencer,
}


def scene_of(block):
    for (page, beginning), scene in SCENES.items():
        if page == block.page and block.text.startswith(beginning):
            return scene
    return LANGUAGES.get(block.language)
