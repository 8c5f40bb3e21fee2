"""As much of Rust's lexical structure as our tools need: comments, strings, test modules, doctests.

No parser: one scanner splits a source into code, comments and literals, so that a brace in a string or a quote in a
comment misleads nobody.
"""

import re

TOKEN = re.compile(
    r"""
    (?P<line>//[^\n]*)
  | (?P<block>/\*)
  | (?P<raw>\bb?c?r(?P<hashes>\#*)")
  | (?P<string>\bb?c?"(?:[^"\\]|\\.)*"|"(?:[^"\\]|\\.)*")
  | (?P<char>b?'(?:[^'\\\n]|\\(?:[nrt0'"\\]|x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}))')
    """,
    re.X | re.S,
)


SKIPPED = object()


def pieces(code: str):
    """Yields (kind, start, end) for every comment and literal; kind is `comment`, `string` or `char`."""
    at = 0
    while found := TOKEN.search(code, at):
        start, end = found.span()
        kind = "comment" if found["line"] or found["block"] else "char" if found["char"] else "string"
        if found["block"]:
            end = block_end(code, start)
        elif found["raw"] is not None:
            closing = code.find('"' + found["hashes"], end)
            end = len(code) if closing < 0 else closing + 1 + len(found["hashes"])
        yield kind, start, end
        at = end


def block_end(code: str, start: int) -> int:
    """Where a block comment ends; they nest."""
    depth, at = 1, start + 2
    while depth and (found := re.compile(r"/\*|\*/").search(code, at)):
        depth += 1 if found.group() == "/*" else -1
        at = found.end()
    return at if depth == 0 else len(code)


def comments(code: str) -> list:
    return [code[start:end] for kind, start, end in pieces(code) if kind == "comment"]


def strings(code: str) -> list:
    return [code[start:end] for kind, start, end in pieces(code) if kind == "string"]


def bare(code: str) -> str:
    """The code with comments and literals blanked, every offset kept."""
    out, at = [], 0
    for _, start, end in pieces(code):
        out += [code[at:start], re.sub(r"[^\n]", " ", code[start:end])]
        at = end
    return "".join([*out, code[at:]])


def test_functions(code: str) -> list:
    """Names of functions under an attribute that makes a test of them (`#[test]`, `#[tokio::test]`, in `proptest!`)."""
    return re.findall(r"#\[(?:\w+::)*test\b[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)", bare(code))


def test_modules(code: str) -> list:
    """The bodies of `#[cfg(test)] mod … { }`."""
    plain = bare(code)
    bodies = []
    for found in re.finditer(r"#\[cfg\((?:all\()?test\b[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{", plain):
        depth, at = 1, found.end()
        while depth and at < len(plain):
            depth += {"{": 1, "}": -1}.get(plain[at], 0)
            at += 1
        bodies.append(code[found.end() : at])
    return bodies


def doctests(code: str) -> list:
    """The code of doc comments' fences that rustdoc compiles."""
    found, fence = [], None
    for comment in code.splitlines():
        text = re.match(r"\s*//[/!] ?(.*)", comment)
        if not text:
            fence = None
            continue
        line = text[1]
        if mark := re.match(r"\s*(```+|~~~+)\s*(.*)", line):
            if fence is not None:
                if fence is not SKIPPED:
                    found.append("\n".join(fence))
                fence = None
            elif re.fullmatch(r"(?:rust|no_run|should_panic|compile_fail|edition\d+|[,\s])*", mark[2]):
                fence = []
            else:
                fence = SKIPPED
        elif fence is not None and fence is not SKIPPED:
            fence.append(line)
    return found
