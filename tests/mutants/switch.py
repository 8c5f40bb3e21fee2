"""One source that holds many mutants, one of which is live at a time.

Where a function has mutants, its body becomes a `match` on the live mutant's number, with a copy of the whole body for
each. So a copy is the text that cargo-mutants would have compiled, whatever the mutant touches: precedence, patterns
and conditions with `let` are as they would be.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from rust import bare  # noqa: E402

VARIABLE = "MRTR_MUTANT"
CONST = re.compile(r"\bconst\b(?=\s+(?:unsafe\s+)?fn\b)")
# Appended to the crate's root. The variable is read once.
LIVE = f"""
#[doc(hidden)]
pub mod live_mutant {{
    extern crate std;
    static LIVE: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    #[inline]
    pub fn number() -> u32 {{
        *LIVE.get_or_init(|| std::env::var("{VARIABLE}").map_or(0, |number| number.parse().expect("a number")))
    }}
}}
"""
# What a mutant may well do.
ALLOWED = "#![allow(warnings, unused_must_use, arithmetic_overflow, unconditional_panic, overflowing_literals)]"


@dataclass
class Host:
    """A function whose body is replaced: the outermost one around its mutants."""

    file: str
    name: str
    """The last part of it."""
    span: tuple
    body: tuple
    """Offsets behind the opening and before the closing brace."""
    const: tuple | None
    """Offsets of the word `const` before `fn`."""
    mutants: list = field(default_factory=list)


def hosts(file: str, source: str, mutants: list) -> list:
    """The functions that have the mutants of one file, in their order."""
    functions = {mutant.function[1]: mutant.function[0] for mutant in mutants if mutant.function}
    plain, found = bare(source), []
    for span, name in sorted(functions.items(), key=lambda item: (item[0][0], -item[0][1])):
        if found and span[1] <= found[-1].span[1]:
            continue
        end = span[1] - 1
        at, depth = end, 0
        while True:
            depth += {"}": 1, "{": -1}.get(plain[at], 0)
            if depth == 0:
                break
            at -= 1
        const = CONST.search(plain, span[0], at)
        found.append(Host(file, name.split("::")[-1], span, (at + 1, end), const.span() if const else None))
    for mutant in mutants:
        for host in found:
            if host.body[0] <= mutant.span[0] and mutant.span[1] <= host.body[1]:
                host.mutants.append(mutant)
    return [host for host in found if host.mutants]


@dataclass
class Copies:
    """Which lines of a written source belong to which host, and to which mutant in it."""

    hosts: list = field(default_factory=list)
    mutants: list = field(default_factory=list)

    def at(self, line: int) -> tuple:
        """The host and the mutant that a line belongs to, none of either elsewhere."""
        return tuple(
            next((owner for first, last, owner in owners if first <= line <= last), None)
            for owners in (self.hosts, self.mutants)
        )


class Writer:
    """Puts a text together and knows the line that it has come to."""

    def __init__(self):
        self.parts, self.line = [], 1

    def add(self, text: str) -> int:
        """Appends, and says in which line the text began."""
        first, self.line = self.line, self.line + text.count("\n")
        self.parts.append(text)
        return first


def switched(source: str, chosen: list) -> tuple:
    """The source with a switch in each of these hosts, and its `Copies`."""
    out, copies, at = Writer(), Copies(), 0
    for host in chosen:
        start, end = host.body
        if host.const:
            out.add(source[at : host.const[0]])
            at = host.const[1]
        out.add(source[at : host.span[0]] if at <= host.span[0] else "")
        first = out.add(source[max(at, host.span[0]) : start])
        out.add(" match crate::live_mutant::number() {\n")
        for mutant in host.mutants:
            begin = out.add(f"{mutant.number} => {{{mutant.apply(source, start, end)}\n}}\n")
            copies.mutants.append((begin, out.line - 1, mutant))
        out.add(f"_ => {{{source[start:end]}\n}}\n}}")
        copies.hosts.append((first, out.line, host))
        at = end
    out.add(source[at:])
    return "".join(out.parts), copies


def together(source: str, chosen: list) -> tuple:
    """The source with these mutants in it, all live, no two in one host; `chosen` are pairs of host and mutant."""
    out, copies, at = Writer(), Copies(), 0
    for host, mutant in sorted(chosen, key=lambda pair: pair[0].span):
        out.add(source[at : host.span[0]])
        first = out.add(mutant.apply(source, *host.span))
        copies.hosts.append((first, out.line, host))
        copies.mutants.append((first, out.line, mutant))
        at = host.span[1]
    out.add(source[at:])
    return "".join(out.parts), copies
