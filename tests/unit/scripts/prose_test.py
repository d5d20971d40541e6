# SPDX-License-Identifier: Apache-2.0
"""Tests scripts/prose: the rules, the places that it reads, and the baseline."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "scripts/prose"


def load_prose():
    loader = importlib.machinery.SourceFileLoader("prose", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("prose", loader))
    loader.exec_module(module)
    return module


prose = load_prose()


def rules_in(sentence, kind="comment"):
    return [one.rule for one in prose.check_text("file", prose.Text(kind).add(1, sentence))]


class Rules(unittest.TestCase):
    def test_finds_each_planted_example(self):
        for rule in prose.RULES:
            for sentence in rule.found:
                with self.subTest(sentence):
                    self.assertIn(rule.id, rules_in(sentence))

    def test_accepts_each_allowed_example(self):
        for rule in prose.RULES:
            for sentence in rule.fine:
                with self.subTest(sentence):
                    self.assertEqual([], rules_in(sentence))

    def test_has_a_reason_and_examples_for_each_rule(self):
        for rule in prose.RULES:
            with self.subTest(rule.words):
                self.assertIn(rule.id, prose.REASONS)
                self.assertTrue(rule.write and rule.found and rule.fine)
                self.assertTrue(any(re.search(rf"(?i)\b(?:{rule.words})\b", one) for one in rule.found))

    def test_checks_the_first_word_of_each_sentence(self):
        for word, (_, found, fine) in prose.FIRST_WORDS.items():
            with self.subTest(word):
                self.assertEqual("first-word", rules_in("It is held. " + found)[0])
                self.assertEqual([], rules_in("It is held. " + fine))

    def test_accepts_what_as_a_question_word_in_headings(self):
        self.assertEqual([], rules_in("What it costs", "phrase"))
        self.assertEqual(["first-word"], rules_in("Of a semaphore", "phrase"))

    def test_finds_comments_that_continue_the_line_above(self):
        for comment in ("Likewise.", "The same.", "Of readers, too.", "As above.", "And nothing else."):
            with self.subTest(comment):
                self.assertEqual(["continuation"], rules_in(comment))
        for comment in ("The same claim twice.", "The value is too large.", "Readers are counted, too: see the limit."):
            with self.subTest(comment):
                self.assertEqual([], rules_in(comment))

    def test_counts_the_words_of_sentences_in_doc_comments(self):
        fits = " ".join(["Word"] + ["word"] * 24) + "."
        exceeds = " ".join(["Word"] + ["word"] * 25) + "."
        self.assertEqual([], rules_in(f"{fits} {fits}", "doc"))
        self.assertEqual(["long-sentence"], rules_in(f"{fits} {exceeds} {fits}", "doc"))
        self.assertEqual([], rules_in(exceeds, "comment"))

    def test_splits_sentences_at_their_ends_only(self):
        for sentence in ("See e.g. Redis for this.", "See dlock.yaml for version 1.2 of it.", "1. First step"):
            with self.subTest(sentence):
                self.assertEqual([(0, len(sentence))], list(prose.sentences(sentence)))
        self.assertEqual(3, len(list(prose.sentences("One ends. Two ends! (Three ends.)"))))
        self.assertEqual(3, len(list(prose.sentences("List:\n- one\n- two"))))

    def test_ignores_code_and_directives(self):
        for sentence in ("Calls `who goes` first.", "Calls Leader::who() first.", "Sets who_takes first.",
                         "Reads tests/unit/house/arrows now.", "Prints \"nobody holds it\" first.",
                         "Pass --who to it.", "See https://example.org/who for this.", "NOLINT(who): checked above"):
            with self.subTest(sentence):
                self.assertEqual([], rules_in(sentence))

    def test_ignores_case_and_line_breaks(self):
        self.assertEqual(["archaic"], rules_in("Renews as\nlong as the thread runs."))
        self.assertEqual(["person"], rules_in("NOBODY holds it."))

    def test_checks_the_form_of_commit_subjects(self):
        self.assertEqual([], rules_in("redis: release an uncontended lock without a script", "subject"))
        self.assertEqual([], rules_in('Revert "redis: release a lock"', "subject"))
        self.assertEqual(["subject"], rules_in("Release an uncontended lock", "subject"))
        self.assertEqual(["subject"], rules_in("redis: " + "x" * 66, "subject"))
        self.assertEqual(["person"], rules_in("redis: release a lock that nobody wants", "subject"))


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return pathlib.Path(name)

    def found(self, name, text):
        """Returns line and rule of each finding in a file with this text."""
        return [(one.line, one.rule) for one in prose.check_file(self.root, self.write(name, text))]

    def run_prose(self, *arguments):
        """Returns the exit status and the output of the script in the temporary tree."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = prose.main(list(arguments), self.root)
        return status, output.getvalue()

    def git(self, *arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", "-C", str(self.root), "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def commit(self, subject):
        self.git("add", "-A")
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", subject)


class Places(Tree):
    def test_reads_cpp_comments(self):
        text = "int a;  // nobody\n\n// A first line\n// that nobody ends. Then\n// it goes.\n/* told\n * anew */\n"
        expected = [(1, "person"), (4, "person"), (5, "verb"), (6, "vague"), (7, "archaic")]
        self.assertEqual(expected, self.found("core/a.cpp", text))

    def test_keeps_trailing_comments_apart(self):
        self.assertEqual([(2, "continuation")], self.found("core/a.hpp", "int a;  ///< held\nint b;  ///< likewise\n"))

    def test_reads_doc_comments(self):
        sentence = "/// One " + "word " * 14 + "\n/// " + "word " * 12 + "end.\n"
        self.assertEqual([(2, "long-sentence")], self.found("core/a.hpp", "/// Short.\n" + sentence))
        self.assertEqual([(1, "long-sentence")], self.found("core/b.hpp", sentence.replace("///", "//!")))
        self.assertEqual([], self.found("core/c.hpp", sentence.replace("///", "//")))

    def test_skips_example_code_in_comments(self):
        self.assertEqual([], self.found("core/a.hpp", "/// Returns it.\n///\n///    auto who = told(nobody);\n"))

    def test_reads_messages_of_shipped_folders(self):
        text = 'f("the lock is held "\n  "by nobody \\"here\\"");\nf("nobody");  // \'"\'\nf("is told anew");\n'
        self.assertEqual([(2, "person"), (4, "archaic"), (4, "vague")], self.found("core/a.cpp", text))
        self.assertEqual([], self.found("tests/a.cpp", text))

    def test_skips_foreign_code_in_raw_strings(self):
        text = ('auto a = R"lua(\nlocal who = redis.call("GET", nobody)\n-- nobody holds it\n)lua";\n'
                'auto b = R"(He is told.)";\n')
        self.assertEqual([(3, "person"), (5, "person"), (5, "vague")], self.found("core/a.cpp", text))
        self.assertEqual([], self.found("core/b.cpp", 'auto a = R"js(\nfunction told(nobody) { return he; }\n)js";\n'))

    def test_reads_python_comments_and_docstrings(self):
        text = ('"""Module.\n\nNobody calls it."""\n\n\ndef f():\n    """Tells it."""\n'
                '    return "nobody # he"  # anew\n')
        self.assertEqual([(3, "person"), (7, "vague"), (8, "archaic")], self.found("scripts/a.py", text))

    def test_reads_shell_comments(self):
        text = "#!/usr/bin/env bash\n# nobody\necho '# he' \"# he\" $#  # anew\ncat <<END\n# he\nEND\n# told\n"
        self.assertEqual([(2, "person"), (3, "archaic"), (7, "vague")], self.found("scripts/run", text))

    def test_reads_cmake_comments(self):
        text = 'set(a "# he")\n# nobody\nset(b [[# he]])  # anew\n'
        self.assertEqual([(2, "person"), (3, "archaic")], self.found("core/CMakeLists.txt", text))
        self.assertEqual([(2, "person"), (3, "archaic")], self.found("cmake/a.cmake.in", text))

    def test_reads_lua_javascript_and_css_comments(self):
        self.assertEqual([(1, "person")], self.found("a.lua", "-- nobody\nlocal who = '-- he'\n"))
        self.assertEqual([(1, "person")], self.found("a.js", "// nobody\nconst who = '// he';\n"))
        self.assertEqual([(1, "person")], self.found("a.css", "/* nobody */\n"))

    def test_reads_markdown_paragraphs_and_headings(self):
        text = "# Nobody\n\nA lock that\nnobody holds. `who` [here](he.md)\n<!-- he -->\n\n```sh\nwho\n```\n\n- told\n"
        self.assertEqual([(1, "person"), (4, "person"), (11, "vague")], self.found("a.md", text))

    def test_reads_table_cells(self):
        text = "| lock | holder |\n|---|---|\n| a | nobody |\n| b | held anew |\n"
        self.assertEqual([(3, "person"), (4, "archaic")], self.found("a.md", text))

    def test_reads_test_names(self):
        text = "TEST(Lock, IsHeld) {}\nTEST_F(Lock, NobodyWaits) {}\nTYPED_TEST(NobodyLock,\n  IsToldAnew) {}\n"
        expected = [(2, "person"), (3, "person"), (4, "archaic"), (4, "vague")]
        self.assertEqual(expected, self.found("tests/a.cpp", text))
        self.assertEqual([(1, "person")], self.found("tests/a.py", "def test_nobody_waits():\n    pass\n"))

    def test_skips_files_without_prose(self):
        for name in ("LICENSE", "docs/models/a.pml", "package-lock.json", "tests/a.edits"):
            self.assertEqual([], self.found(name, "# nobody\n// nobody\n"))
        self.write("tests/fuzz/corpus/a.md", "nobody")
        self.assertEqual([], [str(path) for path in prose.list_files(self.root) if "corpus" in path.parts])

    def test_passes_its_own_rules(self):
        for path in (SCRIPT, pathlib.Path(__file__).resolve()):
            self.assertEqual([], self.found(f"scripts/{path.name}", path.read_text(encoding="utf-8")))


class Baseline(Tree):
    template = None  # a folder with a repository and its baseline; each test has a copy

    def setUp(self):
        super().setUp()
        self.baseline = self.root / "scripts/prose-baseline.txt"
        if Baseline.template:
            shutil.copytree(Baseline.template.name, self.root, dirs_exist_ok=True)
            return
        self.git("init", "-q")
        self.write(".gitignore", "ignored.md\n")
        self.write("ignored.md", "nobody\n")
        self.write("core/a.cpp", "// nobody\n")
        self.write("a.md", "Told and told.\n")
        self.commit("core: add")
        self.write("scripts/prose-baseline.txt", "")
        self.run_prose("--baseline")
        self.commit("scripts: add the baseline")
        Baseline.template = tempfile.TemporaryDirectory()
        shutil.copytree(self.root, Baseline.template.name, dirs_exist_ok=True)

    @classmethod
    def tearDownClass(cls):
        Baseline.template.cleanup()

    def test_writes_sorted_counts(self):
        first = self.git("rev-parse", "HEAD~1")
        lines = self.baseline.read_text(encoding="utf-8").splitlines()
        self.assertEqual([f"commits since: {first}", ". 2", "core 1"], lines[1:])
        self.assertEqual((0, "prose: no new findings; 3 in the baseline\n"), self.run_prose())

    def test_fails_with_place_and_remedy_when_a_count_rises(self):
        self.write("core/b.cpp", "int a;\n// The lock is released anew.\n")
        status, output = self.run_prose()
        self.assertEqual(1, status)
        self.assertIn('core/b.cpp:2: archaic: "The lock is released anew." -> again\n', output)
        self.assertIn("core: 2 findings, 1 in the baseline\n", output)
        self.assertNotIn("a.cpp", output)

    def test_prints_all_findings_when_no_file_differs(self):
        self.write("core/b.cpp", "// nobody\n\n" * 40)
        self.commit("core: add more")
        status, output = self.run_prose()
        self.assertEqual(1, status)
        self.assertEqual(30, output.count(": person: "))
        self.assertIn("and 11 more: scripts/prose core\n", output)

    def test_writes_back_a_lower_count(self):
        self.write("a.md", "Told.\n")
        (self.root / "core/a.cpp").unlink()
        status, output = self.run_prose()
        self.assertEqual(0, status)
        self.assertIn("lowered in prose-baseline.txt: . 2 to 1, core 1 to 0; commit it\n", output)
        self.assertEqual([". 1"], self.baseline.read_text(encoding="utf-8").splitlines()[2:])

    def test_checks_the_subjects_of_new_commits(self):
        self.commit("nothing in particular")
        status, output = self.run_prose()
        self.assertEqual(1, status)
        commit = self.git("rev-parse", "--short", "HEAD")
        self.assertIn(f'commit:{commit}: subject: "nothing in particular" -> area: summary', output)

    def test_skips_commits_when_the_first_one_is_unknown(self):
        text = self.baseline.read_text(encoding="utf-8")
        self.baseline.write_text(re.sub("since: .*", "since: " + "1" * 40, text) + "(commits) 4\n", encoding="utf-8")
        self.commit("nothing in particular")
        self.assertEqual(0, self.run_prose()[0])
        self.assertIn("(commits) 4\n", self.baseline.read_text(encoding="utf-8"))

    def test_works_without_git(self):
        (self.root / "ignored.md").unlink()
        (self.root / ".git").rename(self.root / "no-git")
        self.assertEqual(0, self.run_prose()[0])
        self.write("core/b.cpp", "// anew\n")
        status, output = self.run_prose()
        self.assertEqual(1, status)
        self.assertIn("core/a.cpp:1: person", output)

    def test_names_the_command_that_repairs_the_baseline(self):
        for text in ("core many\n", "", None):
            self.baseline.unlink() if text is None else self.baseline.write_text(text, encoding="utf-8")
            with self.assertRaisesRegex(prose.Failure, "cannot (read|parse) .*run scripts/prose --baseline"):
                self.run_prose()

    def test_prints_all_findings_of_paths(self):
        before = self.baseline.read_text(encoding="utf-8")
        status, output = self.run_prose(str(self.root / "core"))
        self.assertEqual((1, 'core/a.cpp:1: person: "nobody" -> no client, no process, no thread\n'), (status, output))
        self.assertEqual((0, ""), self.run_prose(str(self.baseline)))
        self.assertEqual(before, self.baseline.read_text(encoding="utf-8"))
        with self.assertRaisesRegex(prose.Failure, "cannot check missing"):
            self.run_prose("missing")

    def test_prints_a_table(self):
        status, output = self.run_prose("--table")
        self.assertEqual(0, status)
        self.assertTrue(output.startswith("| folder | first-word | person | vague |"))
        self.assertIn("\n| total | 0 | 1 | 2 |", output)


class CommandLine(unittest.TestCase):
    def test_prints_help_that_fits_the_terminal(self):
        done = subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True)
        self.assertEqual(0, done.returncode)
        self.assertIn("--baseline", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)

    def test_ends_quietly_when_its_output_is_closed(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([sys.executable, SCRIPT, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        self.assertEqual("", done.stderr)

    def test_ends_with_status_2_for_a_missing_path(self):
        done = subprocess.run([sys.executable, SCRIPT, "missing"], capture_output=True, text=True)
        self.assertEqual(2, done.returncode)
        self.assertIn("cannot check missing", done.stderr)

    def test_ends_with_status_130_when_interrupted(self):
        original = prose.main
        self.addCleanup(setattr, prose, "main", original)

        def interrupt(_):
            raise KeyboardInterrupt

        prose.main = interrupt
        self.assertEqual(130, prose.run())


if __name__ == "__main__":
    unittest.main()
