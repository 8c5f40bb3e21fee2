"""Servers that a test starts, and the places where a test's tools and outputs are."""

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CACHE = Path(os.environ.get("MRTR_CACHE") or ROOT / ".cache")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")

URL = re.compile(r"https?://\S+")


class Failed(Exception):
    """What a person should read when a test cannot go on."""


def provide(*what: str) -> str:
    """Calls tests/provide; its messages go where ours go."""
    done = subprocess.run([TESTS / "provide", *what], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"tests/provide {' '.join(what)} failed")
    return done.stdout.strip()


def build(*arguments: str) -> None:
    """`cargo build` of this workspace, or of what the arguments name."""
    if subprocess.run(["cargo", "build", "--locked", "--quiet", *arguments], cwd=ROOT).returncode != 0:
        raise Failed(f"cargo build {' '.join(arguments)} failed")


class Listening:
    """A server process that prints the URL it listens on as a line of its standard output."""

    def __init__(self, command: list, name: str, logs: Path, patience: float = 30.0):
        logs.mkdir(parents=True, exist_ok=True)
        self.log = logs / f"{name}.log"
        self.url = None
        self._seen = threading.Event()
        with self.log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        threading.Thread(target=self._read, daemon=True).start()
        if not self._seen.wait(patience) or self.url is None:
            self.stop()
            raise Failed(f"{name} ended, or named no URL within {patience:.0f} s; its log:\n{self.tail()}")

    def _read(self) -> None:
        # Reads on after the URL: a full pipe would stop the server.
        for line in self._process.stdout:
            if self.url is None and (found := URL.search(line)):
                self.url = found.group()
                self._seen.set()
        self._seen.set()

    def tail(self) -> str:
        return "".join(self.log.read_text(errors="replace").splitlines(keepends=True)[-20:])

    def died(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        stop_group(self._process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def stop_group(process: subprocess.Popen) -> None:
    """Ends a process that leads its own group, and what it has started: politely, then not."""
    for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        limit = time.monotonic() + patience
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
        if process.poll() is not None:
            break
    process.wait()
