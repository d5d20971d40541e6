#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/changed.py."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import changed  # noqa: E402


class ChangedTest(unittest.TestCase):
    def test_a_module_reaches_the_modules_that_include_it(self):
        found = changed.labels(["core/store/hold.cpp"])
        self.assertLessEqual({"unit/store", "unit/manager", "unit/leader", "unit/migration"}, found)
        self.assertIn("contract/memory", found)
        self.assertNotIn("unit/loop", found, "core/loop does not include core/store")
        self.assertNotIn("cli", found)

    def test_a_backend_reaches_its_own_tests_and_no_other_store(self):
        self.assertEqual(changed.labels(["backends/redis/wire/link.cpp"]),
                         {"unit/redis", "unit/house", "contract/redis"})

    def test_a_public_header_reaches_every_module(self):
        found = changed.labels(["include/dlock/spi/claim.hpp"])
        self.assertLessEqual({"unit/redis", "unit/local", "unit/loop", "unit/testing"}, found)

    def test_a_file_with_the_name_of_a_module_belongs_to_it(self):
        self.assertEqual(changed.module_of("migration/admin.hpp", changed.expand(changed.read_includes())),
                         "migration/admin")

    def test_a_test_reaches_its_own_folder_or_tier(self):
        self.assertIn("unit/loop", changed.labels(["tests/unit/loop/crew_test.cpp"]))
        self.assertIn("live", changed.labels(["tests/live/clock_test.cpp"]))
        self.assertIn("cli", changed.labels(["cli/verbs/run.cpp"]))

    def test_a_document_reaches_only_the_checks_of_the_sources(self):
        self.assertEqual(changed.labels(["docs/cli.md", "README.md"]), {"unit/house"})

    def test_every_label_is_a_folder_or_a_tier(self):
        modules = changed.expand(changed.read_includes())
        for label in set().union(*map(changed.labels_of_module, modules)):
            self.assertTrue((ROOT / "tests" / label).is_dir(), label)


if __name__ == "__main__":
    unittest.main()
