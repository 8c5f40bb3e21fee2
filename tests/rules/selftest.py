"""The citation check on small trees of its own: what counts, what does not, what is complained about."""

import contextlib
import importlib.machinery
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.dont_write_bytecode = True


def load():
    loader = importlib.machinery.SourceFileLoader("check", str(HERE / "check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
    loader.exec_module(module)
    return module


check = load()

RULES = "R-001 one\nR-002 two\nR-003 three\nG-01 gap\nBT-1 table\nA1 ask\nB1 claim\n"


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("tests/rules/rules.txt", RULES)
        self.write("tests/rules/pending.txt", "")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cited(self) -> set:
        return set(check.citations(self.root))

    def run_check(self, *arguments: str) -> tuple:
        output = io.StringIO()
        before = sys.argv
        sys.argv = ["check", "--root", str(self.root), *arguments]
        try:
            with contextlib.redirect_stdout(output):
                status = check.main()
        finally:
            sys.argv = before
        return status, output.getvalue()

    def cite_all(self) -> None:
        self.write("tests/suite/all.rs", "// R-001, R-002, R-003, G-01, BT-1, A1, B1\n")

    # What counts.

    def test_comments_strings_and_names_in_test_sources(self):
        self.write(
            "tests/suite/a.rs",
            '// R-001\n/* nested /* A1 */ */\n#[test]\nfn r002_g01_b1_holds() {\n    assert!(x, "R-003 {");\n    let a1 = \'"\'; // BT-1\n}\n',
        )
        self.assertEqual(self.cited(), {"R-001", "A1", "R-002", "G-01", "B1", "R-003", "BT-1"})

    def test_ranges_in_tests_cite_their_ends_only(self):
        self.write("tests/suite/a.rs", "// R-001…R-003\n")
        self.assertEqual(self.cited(), {"R-001", "R-003"})

    def test_short_ids_only_in_comments_and_names(self):
        self.write("tests/suite/a.rs", 'fn helper(A1: B1) { call("A1") }\n#[tokio::test]\nasync fn a1_works() {}\n')
        self.assertEqual(self.cited(), {"A1"})

    def test_crates_count_in_test_modules_and_doctests_only(self):
        self.write(
            "mrtr-core/src/lib.rs",
            "// R-001 as the library says\n//! R-001 in prose\n//! ```\n//! // R-002\n//! ```\n//! ```text\n//! R-001\n//! ```\n"
            'const BRACE: &str = "}"; // R-001\n#[cfg(test)]\nmod tests {\n    const B: &str = "}"; // }\n    #[test]\n    fn g_01() {}\n    // R-003\n}\n// R-001\n',
        )
        self.assertEqual(self.cited(), {"R-002", "R-003", "G-01"})

    def test_a_test_module_in_a_file_of_its_own(self):
        self.write("mrtr-core/src/seal/tests.rs", "// R-001\n")
        self.assertEqual(self.cited(), {"R-001"})

    def test_raw_strings_and_lifetimes_mislead_nobody(self):
        self.write(
            "mrtr-core/src/a.rs",
            'fn f<\'a>(x: &\'a str) { let s = r#"{ " // R-001"#; }\n#[cfg(test)]\nmod tests {\n    // R-002\n}\n// R-003\n',
        )
        self.assertEqual(self.cited(), {"R-002"})

    def test_vectors_scenarios_and_peers(self):
        self.write("tests/vectors/exchanges/a.json", '{"title": "R-003 is only named", "rules": ["R-001", "A1"]}')
        self.write("tests/vectors/b.json", '{"states": [{"rules": ["R-003"]}], "rules": 7}')
        self.write("tests/conformance/scenarios.txt", "server caching R-002 # R-003\n")
        self.write("tests/interop/peer.mjs", "const A1 = 1; // BT-1, B1\n")
        self.write("tests/interop/python/node_modules/x.mjs", "// R-003\n")
        self.assertEqual(self.cited(), {"R-001", "A1", "R-003", "R-002", "BT-1", "B1"})

    def test_the_lists_and_the_prose_do_not_count(self):
        self.write("tests/README.md", "R-001\n")
        self.write("tests/run", "# R-001\n")
        self.assertEqual(self.cited(), set())

    # What is complained about.

    def test_all_cited_is_well(self):
        self.cite_all()
        status, output = self.run_check()
        self.assertEqual(status, 0, output)
        self.assertIn("rules: 7 in all, 0 findings", output)

    def test_an_uncited_rule(self):
        self.write("tests/suite/all.rs", "// R-001, R-003, G-01, BT-1, A1, B1\n")
        status, output = self.run_check()
        self.assertEqual(status, 1)
        self.assertIn("✗ R-002 (two) is cited by no test", output)

    def test_an_excused_rule(self):
        self.write("tests/suite/all.rs", "// G-01, BT-1, A1, B1\n")
        self.write("tests/rules/pending.txt", "[out] for a reason\nR-001\n\n[issue 3] handlers\nR-002…R-003 # both\n")
        status, output = self.run_check()
        self.assertEqual(status, 0, output)
        self.assertIn("rules R: 3, 0 cited, 2 due later, 1 out of scope", output)

    def test_a_stale_excuse_and_its_pruning(self):
        self.cite_all()
        self.write("tests/rules/pending.txt", "[out] for a reason\nR-001…R-003\n")
        self.write("tests/suite/all.rs", "// R-002, G-01, BT-1, A1, B1\n")
        status, output = self.run_check()
        self.assertEqual(status, 1)
        self.assertIn("R-002 is in pending.txt", output)
        status, output = self.run_check("--prune")
        self.assertEqual(status, 0, output)
        self.assertEqual((self.root / "tests/rules/pending.txt").read_text(), "[out] for a reason\nR-001 R-003\n")

    def test_ids_that_do_not_exist(self):
        self.cite_all()
        self.write("tests/suite/b.rs", "// R-999\n#[test]\nfn a13_is_none() {}\n")
        status, output = self.run_check()
        self.assertEqual(status, 1)
        self.assertIn("R-999 does not exist, but tests/suite/b.rs cites it", output)
        self.assertIn("A13 does not exist", output)

    def test_an_excuse_needs_a_section_an_issue_and_an_id_that_exists(self):
        self.cite_all()
        for text, word in (
            ("R-001\n", "no section"),
            ("[issue 9] nothing\n", "not a heading"),
            ("[out]\n", "not a heading"),
            ("[out] x\nR-777\n", "R-777 does not exist"),
            ("[out] x\nG-01 G-01\n", "or two"),
        ):
            self.write("tests/rules/pending.txt", text)
            status, output = self.run_check()
            self.assertEqual(status, 1)
            self.assertIn(word, output)


if __name__ == "__main__":
    unittest.main()
