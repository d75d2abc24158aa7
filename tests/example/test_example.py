#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SOURCE BUILD [--build]: adds the example of CONTRIBUTING ("Adding an operator") to a copy of the sources and shows
that it compiles, with the commands of BUILD, and that it does not once one of its steps is forgotten. With --build the
copy is built as a whole, and the operators' tests and attnum check run with it."""
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
EXAMPLE = SOURCE / "tests/example"
# What the compiler sees of the example: a file, and the one whose command it is compiled by.
UNITS = {
    "lib/operators/registry.c": None,
    "lib/operators/relu/plan.c": "lib/operators/elu/plan.c",
    "lib/operators/relu/cpu.c": "lib/operators/elu/cpu.c",
    "lib/operators/relu/cuda.cu": "operators_elu_cuda_cu_real.cpp",
    "lib/cpu/heads.c": None,
    "lib/cuda/heads.cu": "cuda_heads_cu_real.cpp",
    "reference/operators/relu.c": "reference/operators/elu.c",
    "reference/operators/evaluate.c": None,
    "experiments/check/parameters.c": None,
    "experiments/cost/memory.c": None,
    "tests/operators/test_registry.c": None,
}
# Without its row an operator has no options in attnum check: no mistake a compiler could see.
OPTIONAL = {"experiments/check/parameters.c"}


def edited_files():
    return [line[4:].strip() for line in (EXAMPLE / "edits.patch").read_text().splitlines() if line.startswith("+++ ")]


def command_of(unit, like, copy):
    """The compiler's words for a unit of the copy: those for its like in the build, and no output."""
    name = like or unit
    entry = next(e for e in COMMANDS if e["file"].endswith("/" + name))
    words = shlex.split(entry["command"])
    words = words[1:] if words[0].endswith("ccache") else words
    kept, skip = [], False
    for word in words:
        if skip or word in ("-c", "-MD", entry["file"]):
            skip = False
        elif word in ("-o", "-MQ", "-MF"):
            skip = True
        elif word.startswith("-I"):
            path = (BUILD / word[2:]).resolve()  # of the sources, unless it is the build's or the system's
            own = path.is_relative_to(SOURCE) and not path.is_relative_to(BUILD)
            kept.append(f"-I{copy / path.relative_to(SOURCE) if own else path}")
        else:
            kept.append(word)
    language = ["-x", "c++"] if unit.endswith(".cu") else []
    return [*kept, "-fsyntax-only", "-Werror", *language, str(copy / unit)]


def compiles(copy):
    """The first unit that does not, with what the compiler says; or nothing."""
    for unit, like in UNITS.items():
        if not (copy / unit).exists():
            return f"{unit} is missing"
        run = subprocess.run(command_of(unit, like, copy), cwd=BUILD, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return f"{unit}: {run.stderr}"
    return ""


def add_example(copy):
    for folder in ("lib", "reference"):
        shutil.copytree(EXAMPLE / folder, copy / folder, dirs_exist_ok=True)
    # git is there wherever the sources were cloned, patch is not
    subprocess.run(["git", "-C", str(copy), "apply", "-p0", str(EXAMPLE / "edits.patch")], check=True)


def build(copy):
    """All of it, and the operators' tests."""
    for words in (["meson", "setup", "build", "-Dcuda=disabled"],
                  ["ninja", "--quiet", "-C", "build", "experiments/attnum", "tests/operators/test_operators"],
                  ["build/tests/operators/test_operators", "--jobs", "2"],
                  ["build/experiments/attnum", "check", "--emit-case", "cases", "--operator", "relu/code"]):
        subprocess.run(words, cwd=copy, check=True)


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder) / "copy"
    whole = "--build" in sys.argv
    names = ["lib", "reference", "experiments", "tests"]
    names += ["data", "docs", "python", "scripts", "meson.build", "meson_options.txt"] if whole else []
    for name in names:
        (shutil.copytree if (SOURCE / name).is_dir() else shutil.copy)(SOURCE / name, root / name)
    add_example(root)
    if whole:
        build(root)
        sys.exit()
    COMMANDS = json.loads((BUILD / "compile_commands.json").read_text())
    faults = [compiles(root)]
    assert len(edited_files()) <= 6, "CONTRIBUTING promises at most six edited files"
    for file in edited_files():
        text = (root / file).read_text()
        shutil.copy(SOURCE / file, root / file)
        if file not in OPTIONAL and not compiles(root):
            faults.append(f"{file} as it was: everything compiles, so that this step can be forgotten")
        (root / file).write_text(text)
    print("\n".join(filter(None, faults)) or f"{len(UNITS)} files compile, and not without a step")
    sys.exit(any(faults))
