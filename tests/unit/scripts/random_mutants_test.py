# SPDX-License-Identifier: Apache-2.0
"""Tests scripts/random_mutants.py on small sources: the places, the draw, errors and the runs."""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import mutant_places  # noqa: E402
import random_mutants  # noqa: E402

SAMPLE = """\
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>
namespace sample {
struct Log { void write(int) {} };
struct Part {
  explicit Part(int size) : size_{size}, name_("part") {
    grow(size);
  }
  void grow(int by) noexcept { size_ += by + 1; }
  int size() const { return size_; }
  bool operator==(const Part&) const = default;
  int size_ = 0;
  std::string name_;
};
int longest(const std::vector<Part>& parts) {
  int longest = 0;
  for (const auto& part : parts) {
    if (part.size() > longest && !parts.empty()) longest = part.size();
  }
  return longest;
}
int judge(Part& part, int limit) {
  const auto grow = [&part](int by) { part.grow(by); };
  if (limit < 2)
    part.grow(4);
  else
    grow(part.size() - 1);
  if (part.size() >= limit) {
    grow(3);
  } else if (part.size() == 7) {
    limit += 1'000;
  } else {
    part.grow(limit);
  }
  if (limit > 5) part.grow(8); else part.grow(9);
  switch (limit) {
    case 4:
      part.grow(5);
      break;
    default:
      break;
  }
  return part == Part(limit + 1) ? limit : std::pair<int, int>(1, 2).first;
}
}  // namespace sample
"""


def switched_in(body, kind=None):
    """Returns the switched code of each place in a function with this body."""
    return [mutant_places.Mutant(7, place, text).code.replace("dlock_mutant(7)", "M")
            for text in [f"void f() {{\n  {body}\n}}\n"]
            for place in mutant_places.places_of("core/a.cpp", text) if kind in (None, place.kind)]


class Kinds(unittest.TestCase):
    def check(self, kind, cases):
        for body, expected in cases.items():
            with self.subTest(body):
                self.assertEqual(expected, switched_in(body, kind))

    def test_a_dropped_call_keeps_its_braces(self):
        self.check("dropped call", {
            "stop(1);": ["{ if (!M) stop(1); }"],
            "if (a) stop(); else go();": ["{ if (!M) stop(); }", "{ if (!M) go(); }"],
            "co_await line_->send(a, b);": ["{ if (!M) co_await line_->send(a, b); }"],
            "post([this] { run(); });": ["{ if (!M) post([this] { run(); }); }", "{ if (!M) run(); }"],
            "for (auto& a : b) a.make<int>(1)[2].stop();": ["{ if (!M) a.make<int>(1)[2].stop(); }"],
            "switch (a) { case 1: stop(); }": ["{ if (!M) stop(); }"],
        })

    def test_a_negated_condition_has_its_bool_value(self):
        self.check("negated condition", {
            "if (a && !b) return;": ["M != static_cast<bool>(a && !b)"],
            "while (next()) ++a;": ["M != static_cast<bool>(next())"],
            "if (auto a = f(); a) return;": ["M != static_cast<bool>(a)"],
            "if (a) { x = 1; } else if (b) { x = 2; }": ["M != static_cast<bool>(a)",
                                                         "M != static_cast<bool>(b)"],
        })

    def test_a_changed_comparison_has_both_operands(self):
        self.check("changed comparison", {
            "return a < b;": ["(M ? (a <= b) : (a < b))"],
            "x = a.size() + 1 > f(b, c) || d;": ["(M ? (a.size() + 1 >= f(b, c)) : (a.size() + 1 > f(b, c)))"],
            "if (a) return b <= c;": ["(M ? (b < c) : (b <= c))"],
            "x = static_cast<int>(a) >= b ? 1 : 2;": ["(M ? (static_cast<int>(a) > b) : (static_cast<int>(a) >= b))"],
            "f(a == std::string::npos, b);": ["(M ? (a != std::string::npos) : (a == std::string::npos))"],
            "return a->b != nullptr;": ["(M ? (a->b == nullptr) : (a->b != nullptr))"],
            "for (; i < 3; ++i) {}": ["(M ? (i <= 3) : (i < 3))"],
        })

    def test_a_literal_is_off_by_one(self):
        self.check("off by one", {
            "x = 3;": ["(M ? 4 : 3)"],
            "x = a + 1;": ["(M ? 0 : 1)"],
            "x = a.size() - 1;": ["(M ? 0 : 1)"],
            "x = 1'000U;": ["(M ? 1001U : 1'000U)"],
            "x = a[2];": ["(M ? 3 : 2)"],
            "return a < 2;": ["(M ? 3 : 2)"],
            "pause = milliseconds(64);": ["(M ? 65 : 64)"],
            "return a < milliseconds(65);": ["(M ? 66 : 65)"],
        })

    def test_a_dropped_else_keeps_the_structure(self):
        self.check("dropped else", {
            "if (a) { x = 1; } else { x = 2; }": ["else if (!M) {"],
            "if (a) x = 1; else x = 2;": ["else { if (!M) x = 2; }"],
            "if (a) if (b) { x = 1; } else { x = 2; } else { x = 3; }": ["else if (!M) {"],
            "if (a) { x = 1; } else if (b) { x = 2; }": [],
        })


class Excluded(unittest.TestCase):
    def test_mutates_no_long_pause(self):
        for body in ("pause = std::chrono::milliseconds(65);", "sleep(x, seconds(100));"):
            self.assertEqual([], switched_in(body, "off by one"), body)

    def test_mutates_no_excluded_context(self):
        for body in ("// stop(1);", "/* if (a < 1) */", 'x = "a < 1; stop();";', "x = R\"(if (a) stop();)\";",
                     "static_assert(a < 1);", "assert(a == 1);", "engine.log(2, text);", "log_->write(1);",
                     "constexpr int k = 3;", "if constexpr (a < 3) {}", "char text[16];", "std::array<int, 4> a;",
                     "std::get<1>(a) = b;", "std::lock_guard guard(mutex_);", "x = {1};", "x = 0.5;",
                     "x = 0x10;", "x = 0644;", "wait(5ms), y;", "if (const auto a = f()) {}", "while (true) {}",
                     "x = co_await f(1) == 2;", "if (co_await f()) {}", "text.reserve(n);",
                     "if constexpr (a) { x = b; } else { x = c; }", "return f(a);"):
            with self.subTest(body):
                self.assertEqual([], switched_in(body))

    def test_mutates_no_declaration(self):
        for text in ("int f(int a = 1);\n", "constexpr int f(int a) { return a < 1 ? 2 : 3; }\n",
                     "enum class E { a = 1, b };\n", "struct S { int a = 1; char b[4]; };\n",
                     "const int k = 3;\nconst std::vector<int> all{1, 2};\n", "#define F(a) if (a < 1) stop();\n",
                     "template <int N = 2> struct T {};\n", "consteval bool g() { stop(); return true; }\n"):
            with self.subTest(text):
                self.assertEqual([], mutant_places.places_of("core/a.hpp", text))

    def test_reads_on_after_a_constexpr_function(self):
        text = "constexpr int f() { return 1; }\nint g() { return 2; }\n"
        self.assertEqual([2], [place.line for place in mutant_places.places_of("core/a.cpp", text)])

    def test_finds_functions_after_initializers_with_braces(self):
        text = "C::C(int a)\n    : a_{a}, b_([this] { x; }), c_{} {\n  stop();\n}\nint k = 1;\n"
        self.assertEqual([3], [place.line for place in mutant_places.places_of("core/a.cpp", text)])


class Draw(unittest.TestCase):
    def chosen(self, seed, texts=None):
        return [(one.number, one.where, one.code) for one in
                random_mutants.draw(texts or {"core/a.cpp": SAMPLE, "cli/b.cpp": SAMPLE}, seed)]

    def test_the_same_seed_repeats_the_choice(self):
        self.assertEqual(self.chosen(5), self.chosen(5))
        self.assertNotEqual(self.chosen(5), self.chosen(6))

    def test_mutates_each_line_once_at_most(self):
        lines = [where for _, where, _ in self.chosen(1)]
        self.assertEqual(len(lines), len(set(lines)))

    def test_draws_the_kind_before_the_place(self):
        text = "void f() {\n" + "  stop();\n" * 500 + "  if (a)\n  x = 1;\n}\n"
        first = [next(random_mutants.draw({"core/a.cpp": text}, seed)).place.kind for seed in range(60)]
        self.assertGreater(first.count("negated condition"), 8)

    def test_rejects_more_mutants_than_lines(self):
        with mock.patch.object(random_mutants, "read_sources", lambda: {"core/a.cpp": SAMPLE}):
            with self.assertRaisesRegex(SystemExit, r"--random 999: only \d+ lines can be mutated; lower N"):
                random_mutants.main(999, 1, 1, 0, True)

    def test_names_a_missing_tool(self):
        with mock.patch.object(random_mutants, "read_sources", lambda: {"core/a.cpp": SAMPLE}), \
                mock.patch.object(shutil, "which", lambda tool: None), \
                contextlib.redirect_stdout(io.StringIO()):
            with self.assertRaisesRegex(SystemExit, "cmake is missing; run ./scripts/build"):
                random_mutants.main(1, 1, 1, 0, False)

    def test_lists_without_a_build(self):
        out = io.StringIO()
        with mock.patch.object(random_mutants, "read_sources", lambda: {"core/a.cpp": SAMPLE}):
            with contextlib.redirect_stdout(out):
                self.assertEqual(0, random_mutants.main(2, 9, 1, 0, True))
        self.assertRegex(out.getvalue(), r"^2 random mutants, --seed 9\n   1 core/a.cpp:\d+ \(")


class Switched(unittest.TestCase):
    @unittest.skipUnless(shutil.which("g++"), "g++ is missing")
    def test_all_kinds_compile(self):
        with tempfile.TemporaryDirectory() as folder:
            header = pathlib.Path(folder, random_mutants.SWITCH)
            header.parent.mkdir(parents=True)
            header.write_text(random_mutants.SWITCH_TEXT)
            kinds = set()
            for seed in range(3):
                mutants = list(random_mutants.draw({"core/a.cpp": SAMPLE}, seed))
                kinds |= {one.place.kind for one in mutants}
                source = pathlib.Path(folder, f"{seed}.cpp")
                source.write_text(random_mutants.switched(SAMPLE, mutants))
            self.assertEqual(set(mutant_places.KINDS), kinds)
            done = subprocess.run(
                ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", folder,
                 *(f"{folder}/{seed}.cpp" for seed in range(3))], capture_output=True, text=True)
            self.assertEqual((0, ""), (done.returncode, done.stderr))

    @unittest.skipUnless(shutil.which("g++"), "g++ is missing")
    def test_the_switch_records_what_was_reached(self):
        with tempfile.TemporaryDirectory() as folder:
            header, source = pathlib.Path(folder, "switch.hpp"), pathlib.Path(folder, "main.cpp")
            header.write_text(random_mutants.SWITCH_TEXT)
            source.write_text('#include "switch.hpp"\nint main() { return dlock_mutant(3) ? 1 : 0; }\n')
            program, reached = f"{folder}/program", pathlib.Path(folder, "reached")
            subprocess.run(["g++", "-std=c++20", "-o", program, source], check=True)
            reached.write_bytes(bytes(mutant_places.REACHED))
            for active in ("0", "3"):
                environment = dict(os.environ, DLOCK_MUTANT=active, DLOCK_MUTANTS_REACHED=str(reached))
                self.assertEqual(int(active == "3"), subprocess.run([program], env=environment).returncode)
            self.assertEqual(b"\0\0\0\1\0", reached.read_bytes()[:5])

    def test_lines_keep_their_numbers(self):
        mutants = list(random_mutants.draw({"core/a.cpp": SAMPLE}, 1))
        head, *lines = random_mutants.switched(SAMPLE, mutants).split("\n")[1:]
        self.assertEqual("#line 1", head)
        for mutant in mutants:
            self.assertIn(f"dlock_mutant({mutant.number})", lines[mutant.place.line - 1])


class Errors(unittest.TestCase):
    def setUp(self):
        self.mutants = list(random_mutants.draw({"core/a.cpp": SAMPLE, "cli/b.cpp": SAMPLE}, 1))
        self.one = next(one for one in self.mutants if one.place.path == "core/a.cpp")

    def blamed(self, output):
        return random_mutants.blamed(output, self.mutants, pathlib.Path("/tree"))

    def test_maps_relative_and_absolute_lines(self):
        for path in ("../core/a.cpp", "/tree/core/a.cpp"):
            output = f"[1/2] Building\n{path}:{self.one.place.line}:3: error: no match\nninja: stopped\n"
            self.assertEqual({self.one: "no match"}, self.blamed(output))

    def test_maps_an_error_of_a_template_to_its_use(self):
        output = (f"/usr/include/x:5:1:   required from here\n../core/a.cpp:{self.one.place.line}:3:   required from\n"
                  "/usr/include/y:7:2: error: deduced twice\n")
        self.assertEqual({self.one: "deduced twice"}, self.blamed(output))

    def test_blames_the_nearest_mutant_before_when_no_line_matches(self):
        here = sorted((one for one in self.mutants if one.place.path == "core/a.cpp"),
                      key=lambda one: one.place.line)
        self.assertEqual([here[-1]], list(self.blamed("../core/a.cpp:9999:3: error: strange\n")))
        self.assertEqual([here[0]], list(self.blamed("../core/a.cpp:1:3: error: strange\n")))

    def test_blames_dropped_code_for_a_missing_return(self):
        error = "../core/a.cpp:9999:1: error: control reaches end [-Werror=return-type]\n"
        self.assertIn(next(iter(self.blamed(error))).place.kind, ("dropped call", "dropped else"))

    def test_blames_no_mutant_for_other_failures(self):
        self.assertEqual({}, self.blamed("FAILED: dlock\nld: error: undefined symbol\n"))

    def test_replaces_unusable_mutants(self):
        build = random_mutants.Build(None, {}, pathlib.Path("/tree"))
        outputs = [f"../core/a.cpp:{self.one.place.line}:1: error: no\n", None]
        build.write, build.make, unusable = (lambda mutants: None), (lambda targets: outputs.pop(0)), []
        more = iter(self.mutants)
        first = [one for _, one in zip(range(self.mutants.index(self.one) + 1), more)]
        built = build.usable(first, more, lambda one, error: unusable.append((one, error)))
        self.assertEqual([(self.one, "no")], unusable)
        self.assertEqual(len(first), len(built))
        self.assertNotIn(self.one, built)


class Copy(unittest.TestCase):
    def test_rewrites_only_files_whose_content_differs(self):
        with tempfile.TemporaryDirectory() as folder:
            root, tree = pathlib.Path(folder, "project"), pathlib.Path(folder, "tree")
            for name in ("core/a.cpp", "core/b.cpp", "tests/a.edit"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(SAMPLE)
            mutants = list(random_mutants.draw({"core/a.cpp": SAMPLE}, 1))[:2]
            build = random_mutants.Build(None, {"core/a.cpp": SAMPLE}, tree)
            with mock.patch.object(random_mutants, "ROOT", root), \
                    mock.patch.object(random_mutants, "git_files",
                                      lambda: ["core/a.cpp", "core/b.cpp", "tests/a.edit"]):
                build.write(mutants[:1])
                for name in ("core/a.cpp", "core/b.cpp"):
                    os.utime(tree / name, (1, 1))
                (tree / "core/old.cpp").write_text("")
                (tree / "build").mkdir()
                (tree / "build/kept.o").write_text("")
                build.write(mutants)
            found = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
            self.assertEqual({"core/a.cpp", "core/b.cpp", "build/kept.o",
                              random_mutants.SWITCH_PATH}, found)
            self.assertEqual(SAMPLE, (tree / "core/b.cpp").read_text())
            self.assertIn(mutants[1].code, (tree / "core/a.cpp").read_text())
            self.assertEqual(1, (tree / "core/b.cpp").stat().st_mtime)
            self.assertNotEqual(1, (tree / "core/a.cpp").stat().st_mtime)


class Mapping(unittest.TestCase):
    def test_the_longest_prefix_decides(self):
        for path, first in {"core/config/url.cpp": "config_test", "backends/redis/wire/reply.hpp": "redis_test",
                            "cli/main.cpp": "cli", "core/schedule/runs.cpp": "schedule_test",
                            "include/dlock/mutex.hpp": "core_test",
                            "include/dlock/testing/store.hpp": "testing_test", "migration/gate.cpp": "core_test",
                            "backends/options.hpp": "core_test"}.items():
            with self.subTest(path):
                self.assertEqual(first, random_mutants.tests_of(path)[0])

    def test_cheap_tiers_are_first(self):
        words = random_mutants.tests_of("backends/redis/backend.cpp")
        tiers = [next((at for at, one in enumerate(random_mutants.TIERS) if word.startswith(one)), -1)
                 for word in words]
        self.assertEqual(sorted(tiers), tiers)
        self.assertEqual("redis_test", words[0])
        self.assertLess(words.index("contract/redis"), words.index("sim/redis"))

    def test_the_programs_exist(self):
        lists = "".join(path.read_text() for path in (ROOT / "tests").rglob("CMakeLists.txt"))
        for words in random_mutants.MODULES.values():
            for word in words.split():
                self.assertRegex(lists, rf"\({random_mutants.run_of(word)[0]}\s")

    def test_every_shipped_folder_exists(self):
        for prefix in random_mutants.MODULES:
            self.assertTrue((ROOT / prefix).is_dir(), prefix)


class Runs(unittest.TestCase):
    def run_shell(self, script, **options):
        return random_mutants.Programs().run(["sh", "-c", script], **options)

    def test_passes_the_number_and_a_separate_folder(self):
        status, output = self.run_shell('echo "$DLOCK_MUTANT $TMPDIR"; exit 3', number=7)
        self.assertEqual(3, status)
        self.assertRegex(output, r"^7 /\S+\n$")
        self.assertFalse(os.path.exists(output.split()[1]))

    def test_ends_a_program_that_hangs_and_its_descendants(self):
        status, output = self.run_shell("setsid sleep 600 & echo $!; sleep 600", patience=1)
        self.assertIsNone(status)
        self.assertFalse(self.is_running(output.strip()))

    def test_stop_ends_all_programs(self):
        programs, seen = random_mutants.Programs(), []

        def run():
            try:
                programs.run(["sleep", "600"])
            except random_mutants.Stopped as stopped:
                seen.append(stopped)
        thread = threading.Thread(target=run)
        thread.start()
        end = time.monotonic() + 10
        while not programs.running and time.monotonic() < end:
            time.sleep(0.01)
        programs.stop()
        thread.join(10)
        self.assertEqual(1, len(seen))

    @staticmethod
    def is_running(pid):
        try:
            return pathlib.Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def write_program(self, build, name, script):
        path = build / "build/tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def test_excludes_failures_and_mutants_that_no_test_reaches(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            self.write_program(build, "config_test", '''
[ -z "$DLOCK_MUTANTS_REACHED" ] ||
  printf '\\0\\1\\1' | dd of="$DLOCK_MUTANTS_REACHED" conv=notrunc status=none
case "$*" in *-A.fails*) fails=;; *) fails=1; echo "[  FAILED  ] A.fails (1 ms)";; esac
[ "$DLOCK_MUTANT" -ge 2 ] && echo "[  FAILED  ] A.notices (1 ms)" && exit 1
[ -z "$fails" ]
''')
            tests = random_mutants.Tests(random_mutants.Programs(), build)
            self.assertEqual("config_test: A.fails", tests.baseline("config_test"))
            texts, verdicts = {"core/config/a.cpp": SAMPLE}, []
            with mock.patch.object(random_mutants, "MODULES", {"core/config": "config_test"}):
                for mutant in list(random_mutants.draw(texts, 1))[:3]:
                    verdicts.append((tests.verdict(mutant), mutant.runs))
            self.assertEqual([("", 1), ("config_test: A.notices", 1), ("", 0)], verdicts)

    def test_excludes_a_program_that_crashes_without_a_mutant(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write_program(pathlib.Path(folder), "core_test", "exit 9\n")
            tests = random_mutants.Tests(random_mutants.Programs(), pathlib.Path(folder))
            self.assertEqual("core_test: the whole program, which ends with 9", tests.baseline("core_test"))


class CommandLine(unittest.TestCase):
    def mutants(self, *arguments):
        return subprocess.run([sys.executable, str(ROOT / "scripts/mutants"), *arguments],
                              capture_output=True, text=True)

    def test_rejects_random_together_with_names(self):
        done = self.mutants("--random", "3", "core")
        self.assertEqual(2, done.returncode)
        self.assertIn("--random runs random mutants only", done.stderr)

    def test_help_fits_80_columns(self):
        self.assertEqual([], [line for line in self.mutants("--help").stdout.splitlines() if len(line) > 80])


if __name__ == "__main__":
    unittest.main()
