#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bind.py BINDING.c NAMES.py COMPILER ARGUMENT...: the binding of attnum's library and the names of its choices, from
what the C preprocessor makes of the public headers. Nothing is written down twice; needs cffi.

BINDING.c is the extension module attnum._binding (cffi's API mode: the C compiler fills in sizes, places and values).
NAMES.py has code, name and description of every entry X(code, name, description) of the headers' lists."""
import ast
import pathlib
import pprint
import re
import subprocess
import sys

import cffi

SOURCE = "#include <attnum/attnum.h>\n"


def preprocess(compiler, text, *options):
    return subprocess.run([*compiler, *options, "-E", "-x", "c", "-"], input=text, capture_output=True, text=True,
                          check=True).stdout


def declarations(compiler):
    """What attnum's own headers declare: of the preprocessor's output the lines that it says are theirs."""
    lines, ours = [], False
    for line in preprocess(compiler, SOURCE).splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            ours = pathlib.Path(marker[1]).parent.name == "attnum"
        elif ours:
            lines.append(line)
    return "\n".join(lines)


def lists(compiler):
    """{list: {code: (name, description)}} of every macro ATN_LIST_LIST(X); statuses have a value in a name's place."""
    found = re.findall(r"#define ATN_(\w+)_LIST\(X\)", preprocess(compiler, SOURCE, "-dD"))
    text = preprocess(compiler, SOURCE + "#define ROW(code, name, description) @ROW code, name, description @END\n"
                      + "".join(f"@LIST {name}\nATN_{name}_LIST(ROW)\n" for name in found))
    texts = r'((?:\s*"(?:[^"\\]|\\.)*")+)'  # of C, but Python's in brackets alike
    rows = {part.split()[0].lower(): re.findall(rf"@ROW (\w+),({texts}| -?\d+),{texts} @END", part)
            for part in text.split("@LIST ")[1:]}
    return {name: {code: (ast.literal_eval(f"({first})"), ast.literal_eval(f"({last})"))
                   for code, first, _, last in entries} for name, entries in rows.items()}


def module(found):
    """NAMES.py: the lists of names, and the statuses as a class, which type checkers see."""
    statuses = found.pop("status").items()
    return "\n".join([
        "# Made by bind.py from the lists in attnum's headers.", "import enum", "",
        f"NAMES = {pprint.pformat(found, width=120, sort_dicts=False)}", "", "", "class Status(enum.IntEnum):",
        '    """What a call says: 0 OK, above 0 a numerical outcome, below 0 an error, which becomes an exception."""',
        *(f"    {code.removeprefix('ATN_')} = {value}  # {message}" for code, (value, message) in statuses), ""])


def main():
    binding, python, *compiler = sys.argv[1:]
    builder = cffi.FFI()
    builder.cdef(declarations(compiler))
    builder.set_source("attnum._binding", SOURCE)
    builder.emit_c_code(binding)
    pathlib.Path(python).write_text(module(lists(compiler)))


if __name__ == "__main__":
    main()
