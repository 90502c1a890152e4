# SPDX-License-Identifier: GPL-2.0-only
"""Run nvme-cli's own tests in the folder "tests", unmodified and in order.

usage: own_tests.py VERDICTS [keep-namespace]

A line "passed|failed|skipped MODULE.CLASS.TEST" for each goes to the file VERDICTS, what they
print to stdout. keep-namespace: the controller creates and deletes none, and each test uses the
one that is there; those of nvme-cli 3 do that by themselves, those of 2 fail in their set-up.
"""
import glob
import os
import sys
import unittest


def load():
    """All tests of all modules, in the order of their names, without the example for authors."""
    sys.path.insert(0, "tests")
    modules = sorted(os.path.basename(name)[:-3] for name in glob.glob("tests/nvme_*_test.py"))
    modules = [name for name in modules if name != "nvme_simple_template_test"]
    suite = unittest.defaultTestLoader.loadTestsFromNames(modules)
    return [test for module in suite for group in module for test in group]


def keep_namespace():
    """Prevent tests from recreating namespaces before and after each test."""
    import nvme_test

    def use_what_is_there(test):
        test.dps = test.flbas = 0

    nvme_test.TestNVMe.create_and_attach_default_ns = use_what_is_there


def verdict_of(test):
    """Run it and print failures."""
    result = unittest.TestResult()
    terminal = sys.stdout, sys.stderr
    try:
        test.run(result)
    finally:
        sys.stdout, sys.stderr = terminal
    for _, why in result.failures + result.errors:
        print(why)
    if not result.wasSuccessful():
        return "failed"
    return "skipped" if result.skipped else "passed"


def main():
    tests = load()
    if "keep-namespace" in sys.argv[2:]:
        keep_namespace()
    with open(sys.argv[1], "w", encoding="utf-8") as verdicts:
        for test in tests:
            print("==", test.id(), flush=True)
            os.environ["NVME_TEST"] = test.id()
            print(verdict_of(test), test.id(), file=verdicts, flush=True)


main()
