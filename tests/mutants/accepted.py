"""accepted.md: which mutants may survive, and why."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    key: str
    reason: str
    line: int


class Malformed(Exception):
    pass


def read(path: Path) -> list:
    """The entries: lines of fenced blocks marked `mutants`; the reason is the paragraph above the block."""
    found, paragraph, fence = [], [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if fence is not None:
            if line.startswith("```"):
                fence, paragraph = None, []
            elif line.strip() and fence:
                if any(entry.key == line.strip() for entry in found):
                    raise Malformed(f"{path.name}:{number}: listed twice")
                found.append(Entry(line.strip(), " ".join(paragraph), number))
        elif mark := re.fullmatch(r"```(\w*)", line):
            fence = mark[1] == "mutants"
            while paragraph and not paragraph[-1]:
                paragraph.pop()
            if fence and not paragraph:
                raise Malformed(f"{path.name}:{number}: no reason above the block")
        elif not line.strip():
            paragraph = [""] if not any(paragraph) else [*paragraph, ""]
        else:
            if paragraph and paragraph[-1] == "":
                paragraph = []
            paragraph = [] if line.startswith("#") else [*paragraph, line.strip()]
    return found


def keys(mutants: list, sources: dict) -> dict:
    """The mutants by their names in accepted.md; those that would share a name are numbered."""
    found = {}
    for mutant in mutants:
        plain = key = mutant.key(sources[mutant.file])
        count = 1
        while key in found:
            count += 1
            key = f"{plain} #{count}"
        found[key] = mutant
    return found


def compare(entries: list, by_key: dict, verdicts: dict, rooms: list) -> tuple:
    """Which survivors are accepted, which are not, and which entries of these rooms say what is not so.

    `verdicts` has the mutants that were tried, by number; "survived" are those that no test caught.
    """
    accepted = {entry.key for entry in entries}
    survivors = {key: mutant for key, mutant in by_key.items() if verdicts.get(mutant.number) == "survived"}
    known = [mutant for key, mutant in survivors.items() if key in accepted]
    new = [(key, mutant) for key, mutant in survivors.items() if key not in accepted]
    stale = []
    for entry in entries:
        if entry.key.split("/")[0] not in rooms:
            continue
        if entry.key not in by_key:
            stale.append((entry, "there is no such mutant"))
        elif verdicts.get(by_key[entry.key].number, "survived") != "survived":
            stale.append((entry, f"it is {verdicts[by_key[entry.key].number]}"))
    return known, new, stale
