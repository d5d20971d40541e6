# SPDX-License-Identifier: Apache-2.0
"""One page being done: its folder, its environment, and what is run in them."""

import contextlib
import os
import pathlib
import signal
import subprocess
import threading

import surroundings
import table

PATIENCE = 60  # seconds for one command


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has ended
        pass


class Page:
    def __init__(self, name, source, folder, path, values, links):
        self.name = name
        self.text = (source / name).read_text()
        self.folder = folder
        self.links = links
        self.values = {**values, "folder": str(folder)}
        self.kept = {}  # what one block leaves for the next
        self.environment = surroundings.clean_environment(folder, path)
        for variable, value in table.ENVIRONMENT.items():
            self.environment[variable] = self.fill_in(value)
        for file, content in table.FILES.items():
            self.write(file, self.fill_in(content))
        (folder / "app").mkdir()
        (folder / "build/bin").mkdir(parents=True)
        (folder / "build/bin/dlock").symlink_to(pathlib.Path(path) / "dlock")

    def write(self, file, content):
        (self.folder / file).write_text(content)
        (self.folder / file).chmod(0o755)

    def fill_in(self, text):
        """The page's servers and folders become ours."""
        for written, ours in table.REPLACED:
            text = text.replace(written, ours.format_map(self.values))
        return text

    @contextlib.contextmanager
    def start(self, command, **streams):
        """A process that goes on, its streams as text. Whatever it started ends with it."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **streams}
        with subprocess.Popen(
            ["bash", "-c", self.fill_in(command)],
            cwd=self.folder,
            env=self.environment,
            text=True,
            start_new_session=True,
            **streams,
        ) as process:
            latest = threading.Timer(PATIENCE, end_group, [process])
            latest.start()
            try:
                yield process
            except BaseException:
                end_group(process)
                raise
            finally:
                process.wait()
                latest.cancel()

    def finish(self, command, status=0):
        """What the command has written to its two streams. `export` stays for the next."""
        script = f"{command}\ns=$?; env -0 >.environment; exit $s"
        streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with self.start(script, **streams) as process:
            out, err = process.communicate()
        if process.returncode != status:
            ended = f"`{command}` ends with {process.returncode}, not {status}"
            raise AssertionError(f"{ended}:\n{out}{err}")
        left = (self.folder / ".environment").read_text().rstrip("\0")
        self.environment = dict(line.split("=", 1) for line in left.split("\0"))
        return out, err
