# SPDX-License-Identifier: Apache-2.0
"""What a page takes for granted: servers, a folder, an environment, a service behind HTTP."""

import contextlib
import http.server
import os
import socket
import subprocess
import threading


class Link:
    """A TCP address that leads to a server, and can be cut: nothing passes then, all stays open."""

    def __init__(self, port):
        self._server = ("127.0.0.1", port)
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @contextlib.contextmanager
    def cut(self):
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        self._open.wait()
        with client, socket.create_connection(self._server) as server:
            back = threading.Thread(target=self._pass, args=(server, client), daemon=True)
            back.start()
            self._pass(client, server)
            back.join()

    def _pass(self, source, target):
        try:
            while data := source.recv(65536):
                self._open.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:  # the other side has gone: so do we
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Shop(http.server.BaseHTTPRequestHandler):
    """Takes a write only with a sequencer."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        known = self.headers.get("X-Lock", "").startswith("dlock1:exclusive:")
        self.send_response(200 if known else 400)
        self.end_headers()

    def log_message(self, *_):
        pass


def start_shop():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


class Servers:
    """Real servers on free ports, each behind a link. Ends them with the `with` block."""

    KINDS = ("zookeeper", "redis", "memcached")

    def __init__(self, program, folder):
        self._program = program
        self._folder = folder

    def __enter__(self):
        # A tick of two seconds is ZooKeeper's default: the sessions of the pages are for that.
        started = self._do("start", "--tick", "2000", *self.KINDS)
        ports = [int(url.split(":")[-1].split("/")[0]) for url in started.split()]
        self.links = {kind: Link(port) for kind, port in zip(self.KINDS, ports)}
        return self

    def __exit__(self, *_):
        self._do("stop")

    def _do(self, what, *arguments):
        command = [self._program, what, "--dir", self._folder, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def clean_environment(folder, path):
    """A user's who has just logged in: a home of his own, nothing of dlock's."""
    kept = ("LANG", "TMPDIR", "TERM")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment["PATH"] = os.pathsep.join([path, "/usr/local/bin", "/usr/bin", "/bin"])
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        place = folder / "home" / name.lower()
        place.mkdir(parents=True, mode=0o700, exist_ok=True)
        environment[name] = str(place)
    return environment
