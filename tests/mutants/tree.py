"""A copy of the project in which mutants are built."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from switch import ALLOWED, LIVE


class Unattributed(SystemExit):
    """The compiler complained about something that no mutant and no switch explains."""


class Tree:
    """A copy of what git has or would add, to be changed at will; built again, it keeps what has not changed."""

    def __init__(self, root: Path, folder: Path, package: str, target: Path, options: list):
        self.root, self.folder, self.package, self.options = root, folder, package, options
        self.files = {name: (root / name).read_bytes() for name in files(root)}
        manifest = f'^name = "{re.escape(package)}"$'
        self.crate = next(
            name.removesuffix("Cargo.toml")
            for name in self.files
            if name.endswith("/Cargo.toml") and re.search(manifest, self.files[name].decode(), re.M)
        )
        # A function that must be inlined has as many copies in each caller as the caller has mutants: both grow too large
        # to be compiled.
        for name in self.files:
            if name.startswith(f"{self.crate}src/"):
                self.files[name] = self.files[name].replace(b"#[inline(always)]", b"#[inline(never)]")
        self.environment = os.environ | {
            "CARGO_TARGET_DIR": str(target),
            "CARGO_INCREMENTAL": "1",
            "CARGO_PROFILE_DEV_DEBUG": "0",
            "CARGO_TERM_COLOR": "never",
        }
        self.environment.pop("RUSTFLAGS", None)
        self.copy()

    def copy(self) -> None:
        wanted = set(self.files)
        for path in self.folder.rglob("*"):
            if path.is_file() and path.relative_to(self.folder).as_posix() not in wanted:
                path.unlink()
        for name in self.files:
            self.restore(name)

    def restore(self, name: str) -> None:
        """Puts back a file as the project has it."""
        content = self.files[name]
        if name == f"{self.crate}src/lib.rs":
            content = f"{ALLOWED}\n{content.decode()}{LIVE}".encode()
        elif name == f"{self.crate}Cargo.toml":
            content = content.decode().replace("[lints]\nworkspace = true\n", "").encode()
        self.write(name, content)
        shutil.copymode(self.root / name, self.folder / name)

    def write(self, name: str, content) -> None:
        content = content.encode() if isinstance(content, str) else content
        path = self.folder / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def cargo(self, *arguments) -> tuple:
        """Whether it succeeded, and what it reported."""
        done = subprocess.run(
            ["cargo", *arguments, "--message-format", "json", *self.options],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode and not any(message["reason"] == "compiler-message" for message in messages):
            raise SystemExit(f"cargo {' '.join(arguments)}\n{done.stderr}")
        return done.returncode == 0, messages

    def check(self) -> list:
        """The compiler's errors: message, code, and the places, as file and first and last line, first what matters."""
        good, messages = self.cargo("check", "--lib", "--package", self.package, "--all-features")
        return [] if good else errors(messages)

    def build(self, *arguments) -> dict | None:
        """The test programs by the names of their targets, as path and folder to run in; none if it does not build."""
        good, messages = self.cargo("test", "--no-run", *arguments)
        if not good:
            return None
        return {
            message["target"]["name"]: (Path(message["executable"]), Path(message["manifest_path"]).parent)
            for message in messages
            if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]
        }


def files(root: Path) -> list:
    """What git has or would add."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
    )
    return sorted(name for name in set(listing.stdout.decode().split("\0")) if name and (root / name).is_file())


def errors(messages: list) -> list:
    found = []
    for message in messages:
        if message["reason"] != "compiler-message" or message["message"]["level"] != "error":
            continue
        message = message["message"]
        spans = sorted(message["spans"], key=lambda span: not span["is_primary"])
        places = [place for span in spans for place in unfolded(span)]
        if not places and message["code"] is None and "aborting due to" in message["message"]:
            continue
        found.append((message["message"], (message["code"] or {}).get("code"), places))
    return found


def unfolded(span: dict):
    """The place of a span, and if it is in a macro, where the macro was used."""
    while span:
        yield span["file_name"], span["line_start"], span["line_end"]
        span = (span.get("expansion") or {}).get("span")
