#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bind.py BINDING.c NAMES.py COMPILER ARGUMENT...: the binding of attnum's library and the names of its choices, from
what the C preprocessor makes of the public headers. Nothing is written down twice; needs cffi.

BINDING.c is the extension module attnum._binding (cffi's API mode: the C compiler fills in sizes, places and values).
NAMES.py has, for every entry X(code, name, description) of the headers' lists, its code, name and description."""
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


def names(compiler):
    """{list: {code: (name, description)}} of every macro ATN_LIST_LIST(X)."""
    lists = re.findall(r"#define ATN_(\w+)_LIST\(X\)", preprocess(compiler, SOURCE, "-dD"))
    text = preprocess(compiler, SOURCE + "#define ROW(code, name, description) @ROW code, name, description @END\n"
                      + "".join(f"@LIST {name}\nATN_{name}_LIST(ROW)\n" for name in lists))
    texts = r'((?:\s*"(?:[^"\\]|\\.)*")+)'  # of C, but Python's in brackets alike
    found = {}
    for part in text.split("@LIST ")[1:]:
        rows = re.findall(rf"@ROW (\w+),{texts},{texts} @END", part)
        found[part.split()[0].lower()] = {code: (ast.literal_eval(f"({name})"), ast.literal_eval(f"({description})"))
                                          for code, name, description in rows}
    return {name: rows for name, rows in found.items() if rows}  # statuses have a number, and messages, not names


def main():
    binding, module, *compiler = sys.argv[1:]
    builder = cffi.FFI()
    builder.cdef(declarations(compiler))
    builder.set_source("attnum._binding", SOURCE)
    builder.emit_c_code(binding)
    pathlib.Path(module).write_text(f"# Made by bind.py from the lists in attnum's headers.\n"
                                    f"NAMES = {pprint.pformat(names(compiler), width=120, sort_dicts=False)}\n")


if __name__ == "__main__":
    main()
