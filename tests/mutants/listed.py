"""The mutants that cargo-mutants lists, and their names in accepted.md."""

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VERSION = "27.1.0"


@dataclass(frozen=True)
class Mutant:
    """A piece of a source that is replaced."""

    number: int
    """From one, in the order of the list: what switches it on."""
    file: str
    """From the root of the project."""
    genre: str
    name: str
    """What is replaced by what in which function, without the place."""
    place: tuple
    """First line and column, counted from one."""
    span: tuple
    """Offsets in the source."""
    function: tuple | None
    """Name, and the offsets of the innermost function around it; none in the value of a constant."""
    replacement: str

    def apply(self, source: str, start: int = 0, end: int | None = None) -> str:
        """The source, or the part of it from `start` to `end`, as the mutant has it."""
        end = len(source) if end is None else end
        return f"{source[start:self.span[0]]}{self.replacement} {source[self.span[1]:end]}"

    def key(self, source: str) -> str:
        """Its name in accepted.md: for an operator the line as the mutant has it, which no shift of lines changes."""
        where = self.file.split("/src/", 1)[-1]
        if self.genre in ("BinaryOperator", "UnaryOperator") and "\n" not in source[slice(*self.span)]:
            start = source.rfind("\n", 0, self.span[0]) + 1
            end = source.find("\n", self.span[1])
            line = source[start : self.span[0]] + self.replacement + source[self.span[1] : end]
            function = f" {self.function[0]}" if self.function else ""
            return f"{where}{function}: {' '.join(line.split())}"
        return f"{where}: {' '.join(self.name.split())}"

    def __str__(self) -> str:
        return f"{self.file}:{self.place[0]}:{self.place[1]}: {self.name}"


@cache
def line_starts(source: str) -> tuple:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return tuple(starts)


def offsets(source: str, span: dict) -> tuple:
    starts = line_starts(source)
    return tuple(starts[span[end]["line"] - 1] + span[end]["column"] - 1 for end in ("start", "end"))


def read(listed: list, root: Path) -> list:
    """The mutants of a list as `cargo mutants --list --json` prints it."""
    found, sources = [], {}
    for number, entry in enumerate(listed, 1):
        file, span, function = entry["file"], entry["span"], entry["function"]
        if file not in sources:
            sources[file] = (root / file).read_text()
        source, place = sources[file], (span["start"]["line"], span["start"]["column"])
        prefix = f"{file}:{place[0]}:{place[1]}: "
        found.append(
            Mutant(
                number=number,
                file=file,
                genre=entry["genre"],
                name=entry["name"].removeprefix(prefix),
                place=place,
                span=offsets(source, span),
                function=(function["function_name"], offsets(source, function["span"])) if function else None,
                replacement=entry["replacement"],
            )
        )
    return found


def ask(root: Path, package: str, globs: list, more: list) -> list:
    """Has cargo-mutants list what it would do to these files; installs it if it is not there."""
    if subprocess.run(["cargo", "mutants", "--version"], capture_output=True).returncode:
        subprocess.run(["cargo", "install", "--locked", "cargo-mutants", "--version", VERSION], check=True)
    files = [word for glob in globs for word in ("--file", glob)]
    listing = subprocess.run(
        ["cargo", "mutants", "--list", "--json", "--package", package, *files, *more],
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
    )
    return read(json.loads(listing.stdout), root)
