"""Mutation testing tested: the rewriting of sources, the accepted list, and a whole run on a small crate."""

import contextlib
import importlib.machinery
import importlib.util
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import accepted  # noqa: E402
import listed  # noqa: E402
import switch  # noqa: E402
import trial  # noqa: E402
import viable  # noqa: E402
from tree import Tree  # noqa: E402


def load():
    loader = importlib.machinery.SourceFileLoader("run", str(HERE / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
    loader.exec_module(module)
    return module


SAMPLE = """\
//! Sums.
const TWO: usize = 1 + 1;
const THREE: usize = next(TWO);

/// One more, also for constants: `{`.
pub const fn next(n: usize) -> usize {
    n + 1
}

pub const fn half(n: usize) -> usize {
    n / TWO
}

pub fn both(n: usize) -> impl Iterator<Item = usize> {
    [n, THREE].into_iter().filter(|n| *n > 0)
}

pub fn down(mut n: Option<usize>) -> usize {
    let mut steps = 0;
    while let Some(some) = n
        && some > 0
    {
        n = Some(some - 1);
        steps += 1; // no } in a comment
    }
    match steps {
        2 => 2,
        other => other | 0,
    }
}
"""

TESTS = """\
#[cfg(test)]
mod tests {
    use super::sums::*;
    #[test]
    fn halves() { assert_eq!(half(8), 4); }
    #[test]
    fn has_both() { assert_eq!(both(7).collect::<Vec<_>>(), [7, 3]); }
    #[test]
    fn goes_down() { assert_eq!([down(None), down(Some(3)), down(Some(2))], [0, 3, 2]); }
}
"""

# What is replaced by what, in which function (its first and last words), and what becomes of it.
WANTED = [
    ("BinaryOperator", "1 + 1", "+", "-", None, "replace + with -", "caught"),
    ("BinaryOperator", "n + 1\n", "+", "*", "next", "replace + with * in next", "caught"),
    ("FnValue", "n + 1\n", "n + 1", "Default::default().nothing()", "next", "replace next with nonsense", "unviable"),
    ("BinaryOperator", "n / TWO", "/", "*", "half", "replace / with * in half", "caught"),
    ("FnValue", "[n, THREE].into_iter().filter(|n| *n > 0)", "[n, THREE].into_iter().filter(|n| *n > 0)", "::std::iter::empty()", "both", "replace both -> impl Iterator with ::std::iter::empty()", "caught"),
    ("BinaryOperator", "*n > 0", ">", ">=", "both", "replace > with >= in both", "survived"),
    ("BinaryOperator", "&& some > 0", "&&", "||", "down", "replace && with || in down", "unviable"),
    ("BinaryOperator", "&& some > 0", ">", "<", "down", "replace > with < in down", "caught"),
    ("BinaryOperator", "some - 1", "-", "/", "down", "replace - with / in down", "timed out"),
    ("BinaryOperator", "other | 0", "|", "^", "down", "replace | with ^ in down", "survived"),
    ("MatchArm", "2 => 2,", "2 => 2,", "", "down", "delete match arm 2 in down", "survived"),
    ("MatchArm", "other => other | 0,", "other => other | 0,", "", "down", "delete match arm other in down", "unviable"),
]


def place(offset: int) -> dict:
    before = SAMPLE[:offset]
    return {"line": before.count("\n") + 1, "column": offset - before.rfind("\n")}


def span(start: int, end: int) -> dict:
    return {"start": place(start), "end": place(end)}


def listing() -> list:
    """What `cargo mutants --list --json` would say of the sample."""
    found = []
    for genre, around, what, by, function, name, _ in WANTED:
        start = SAMPLE.index(around) + around.index(what)
        entry = {"file": "sample/src/sums/mod.rs", "genre": genre, "replacement": by, "function": None}
        entry["span"] = span(start, start + len(what))
        at = entry["span"]["start"]
        entry["name"] = f"{entry['file']}:{at['line']}:{at['column']}: {name}"
        if function:
            first = SAMPLE.index(f"fn {function}(")
            first = SAMPLE.rfind("\n", 0, first) + 1
            entry["function"] = {"function_name": function, "span": span(first, SAMPLE.index("\n}\n", first) + 2)}
        found.append(entry)
    return found


class Small(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve() / "project"
        for name, text in {
            "Cargo.toml": '[workspace]\nresolver = "3"\nmembers = ["sample"]\n',
            "Cargo.lock": 'version = 4\n\n[[package]]\nname = "sample"\nversion = "0.1.0"\n',
            "sample/Cargo.toml": '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2024"\n',
            "sample/src/lib.rs": f"pub mod sums;\n{TESTS}",
            "sample/src/sums/mod.rs": SAMPLE,
        }.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.mutants = listed.read(listing(), self.root)

    def mutant(self, name: str):
        return next(mutant for mutant in self.mutants if mutant.name == name)


class Rewriting(Small):
    def test_a_mutant_is_put_where_it_belongs(self):
        self.assertIn("other ^  0,", self.mutant("replace | with ^ in down").apply(SAMPLE))
        self.assertNotIn("2 => 2", self.mutant("delete match arm 2 in down").apply(SAMPLE))

    def test_names_do_not_depend_on_the_place_of_a_line(self):
        names = [self.mutant(name).key(SAMPLE) for name in ("replace | with ^ in down", "delete match arm 2 in down", "replace + with -")]
        self.assertEqual(
            names,
            ["sums/mod.rs down: other => other ^ 0,", "sums/mod.rs: delete match arm 2 in down", "sums/mod.rs: const TWO: usize = 1 - 1;"],
        )

    def test_a_host_is_a_function_with_its_body(self):
        found = switch.hosts("f", SAMPLE, self.mutants)
        self.assertEqual([(host.name, len(host.mutants)) for host in found], [("next", 2), ("half", 1), ("both", 2), ("down", 6)])
        self.assertEqual([bool(host.const) for host in found], [True, True, False, False])
        self.assertEqual(SAMPLE[slice(*found[1].body)], "\n    n / TWO\n")

    def test_lines_of_a_switched_source_are_known(self):
        text, copies = switch.switched(SAMPLE, switch.hosts("f", SAMPLE, self.mutants))
        lines = text.split("\n")
        for mutant in self.mutants[1:]:
            first, last, _ = next(owner for owner in copies.mutants if owner[2] is mutant)
            copy = "\n".join(lines[first - 1 : last])
            self.assertTrue(copy.startswith(f"{mutant.number} => {{"), copy)
            self.assertEqual(copies.at(first)[1], mutant)
        self.assertEqual(text.count("const fn"), 0)
        self.assertEqual(copies.at(2), (None, None))

    def test_mutants_of_several_functions_stand_in_one_source(self):
        found = switch.hosts("f", SAMPLE, self.mutants)
        pairs = [(host, host.mutants[0]) for host in found]
        text, copies = switch.together(SAMPLE, pairs)
        self.assertIn("n *  1", text)
        self.assertIn("n *  TWO", text)
        for host, mutant in pairs:
            line = next(number for number, line in enumerate(text.split("\n"), 1) if f"fn {host.name}(" in line)
            self.assertEqual(copies.at(line), (host, mutant))


class Accepting(Small):
    def read(self, text: str) -> list:
        (self.root / "accepted.md").write_text(text)
        return accepted.read(self.root / "accepted.md")

    def test_an_entry_has_the_reason_above_it(self):
        found = self.read("# Title\n\nProse.\n\nFor a\nreason:\n\n```mutants\na: b\nc: d\n```\n\n```sh\nls\n```\n")
        self.assertEqual([(entry.key, entry.reason) for entry in found], [("a: b", "For a reason:"), ("c: d", "For a reason:")])

    def test_no_entry_without_a_reason(self):
        for text in ("```mutants\na: b\n```\n", "# Title\n\n```mutants\na: b\n```\n", "Why\n\n```mutants\n```\n```mutants\na: b\n```\n"):
            with self.assertRaises(accepted.Malformed, msg=text):
                self.read(text)

    def test_no_entry_twice(self):
        with self.assertRaises(accepted.Malformed):
            self.read("Why\n```mutants\na: b\na: b\n```\n")

    def test_the_real_list_is_one_of_sources_that_there_are(self):
        root = HERE.parents[1] / "mrtr-core/src"
        for entry in accepted.read(HERE / "accepted.md"):
            self.assertTrue((root / entry.key.split(" ")[0].rstrip(":")).is_file(), entry.key)


class Running(Small):
    def test_a_run_from_the_list_to_the_verdicts(self):
        for words in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", *words], cwd=self.root, check=True)
        run = load()
        run.PACKAGE, run.ROOMS, run.BUILD, run.SKIPPED = "sample", {"sums": ["down"]}, ["--package", "sample", "--lib"], []
        trial.SPARE = 1
        project, done = viable.Project(self.root, self.mutants), run.Run(self.mutants)
        target = self.root.parent / "target"
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            left = run.with_switches(project, Tree(self.root, self.root.parent / "switched", "sample", target, []), done, 2)
            behind = set(done.verdicts)
            run.one_by_one(project, Tree(self.root, self.root.parent / "alone", "sample", target, []), done, left)
        for mutant, (*_, wanted) in zip(self.mutants, WANTED, strict=True):
            self.assertEqual(done.verdicts.get(mutant.number), wanted, f"{mutant}\n{said.getvalue()}")
        # The constant, the constant function that it needs, other types of iterators, what does not compile.
        alone = {1, 2, 3, 5, 6, 7, 12}
        self.assertEqual(behind, {mutant.number for mutant in self.mutants} - alone)
        self.assertEqual(done.by[self.mutant("replace / with * in half").number], "tests::halves")

        by_key = accepted.keys(self.mutants, project.sources)
        entries = [
            accepted.Entry("sums/mod.rs: delete match arm 2 in down", "the same", 1),
            accepted.Entry("sums/mod.rs half: n * TWO", "caught", 2),
            accepted.Entry("sums/mod.rs half: n - TWO", "not listed", 3),
            accepted.Entry("other/mod.rs half: n - TWO", "another room", 4),
        ]
        known, new, stale = accepted.compare(entries, by_key, done.verdicts, ["sums"])
        self.assertEqual([mutant.name for mutant in known], ["delete match arm 2 in down"])
        self.assertEqual([mutant.name for _, mutant in new], ["replace > with >= in both", "replace | with ^ in down"])
        self.assertEqual([(entry.line, why) for entry, why in stale], [(2, "it is caught"), (3, "there is no such mutant")])


if __name__ == "__main__":
    unittest.main()
