#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SOURCE: how scripts/test-aarch64 judges what the emulator ran, goes on, and ends; nothing is built or emulated."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("aarch64", str(pathlib.Path(sys.argv[1]).resolve() / "scripts/test-aarch64"))
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("aarch64", loader))
loader.exec_module(script)
failed = 0
bad, ran = set(), []


def check(what, right):
    global failed
    failed += not right
    print(f"{'ok  ' if right else 'FAIL'}  {what}")


class Emulator:
    """Two tests, of which those in `bad` fail."""
    limit = 300

    def __init__(self, *_):
        pass

    def run(self, words, **_):
        if "--list" in words:
            return 0, "area: 2 tests\n├── one\n└── two\n", 0.1
        ran.append(words[-1])
        wrong = words[-1] in bad
        return int(wrong), f"Synthesis: Tested: 1 | Passing: {int(not wrong)} | Failing: {int(wrong)} | Crashing: 0", 1.0


def main(*words):
    """The exit code, and which tests ran."""
    ran.clear()
    sys.argv = ["test-aarch64", "--folder", "folder", *words]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = script.main()
        except SystemExit as end:
            code = end.code
    return code, list(ran)


script.check_tools, script.make_root, script.build = lambda: None, lambda folder: folder, lambda *_: pathlib.Path("build")
script.Emulator = Emulator
judge = script.judge
crashed, counted = "Synthesis: Crashing: 1", "Synthesis: Failing: 1 | Crashing: 0"
check("a test that the limit ended is too slow", judge(1, crashed, 299.0, 300, False) == "too slow")
check("one that crashed before is not", judge(1, crashed, 20.0, 300, False) == "FAILED")
check("one that failed just before it is not", judge(1, counted, 299.0, 300, False) == "FAILED")
check("a program that the limit ended is too slow", judge(-9, "", 299.0, 300, True) == "too slow")
check("a wrong verdict just before it is none", judge(1, "S22: holds, not fails", 299.0, 300, True) == "FAILED")
with tempfile.TemporaryDirectory(prefix="attnum-aarch64-") as place:
    os.chdir(place)
    suite = ("--suite", "ruler", "--out", "rows.csv")
    bad.add("area/two")
    check("a failure ends with 1", main(*suite) == (1, ["area/one", "area/two"]))
    check("--resume runs it again, and ends with 1", main(*suite, "--resume") == (1, ["area/two"]))
    bad.clear()
    check("once it passes with 0", main(*suite, "--resume") == (0, ["area/two"]))
    check("then nothing is left", main(*suite, "--resume") == (0, []))
    check("--resume without a file is refused", main("--suite", "ruler", "--resume") == (2, []))
    os.chdir("/")
sys.exit(1 if failed else 0)
