#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""worsen.py SOURCE FIND REPLACE OUT: a copy of a source with one fault in it.

FIND must be there once: a fault that no longer fits the source is an error of the build.
"""
import pathlib
import sys


def main():
    source, find, replace, out = sys.argv[1:]
    text = pathlib.Path(source).read_text()
    if text.count(find) != 1:
        print(f"worsen: {source} has '{find}' {text.count(find)} times, expected once", file=sys.stderr)
        return 1
    pathlib.Path(out).write_text(text.replace(find, replace))
    return 0


if __name__ == "__main__":
    sys.exit(main())
