#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what the compiler reports about each kernel with the table tests/gpu/registers.csv.

  registers.py --table TABLE --nvcc NVCC LOG...            judges
  registers.py --table TABLE --nvcc NVCC --update LOG...   writes the table

A log is what ptxas -v said when a file was compiled. Fails on a warning, on more spilled bytes than
in the table, and, with the compiler the table was made with, on more than 8 registers more, on more
stack, on a kernel that is not in the table and on one of the table that is no longer there. Only
architectures that are in both are compared. Exits with 77 if there are no logs or no table.
"""
import argparse
import csv
import pathlib
import re
import subprocess
import sys

COLUMNS = ("unit", "kernel", "architecture", "registers", "stack", "spill_stores", "spill_loads")
KEY, NUMBERS = COLUMNS[:3], COLUMNS[3:]
MORE_REGISTERS = 8  # the allocator's steps: less may come from anywhere in the file

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\w+)'")
PROPERTIES = re.compile(r"Function properties for (\S+)")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
# nvcc's name for what has internal linkage: it holds a hash of the path and one of the contents.
INTERNAL = re.compile(r"_INTERNAL_[0-9a-f]+_\d+_(\w+?)_cu_[0-9a-f]{8}(?=$|\W|_\d|[a-z])")


def fail(text):
    print(f"registers: {text}", file=sys.stderr)
    sys.exit(1)


# ---- Logs ----


def read_log(unit, text):
    """The rows of one log, by key, and its warnings."""
    rows, warnings, name, architecture, kernel = {}, [], None, None, None
    for line in text.splitlines():
        if re.search(r"\bwarning\b", line, re.I):
            warnings.append(f"{unit}: {line.strip()}")
        if match := ENTRY.search(line):
            name, architecture = match.groups()
        elif match := PROPERTIES.search(line):
            kernel = match[1]
            rows[unit, kernel, architecture] = dict.fromkeys(NUMBERS, 0)
        elif match := STACK.search(line):
            rows[unit, kernel, architecture].update(zip(NUMBERS[1:], map(int, match.groups())))
        elif match := REGISTERS.search(line):
            rows[unit, name, architecture]["registers"] = int(match[1])
    return rows, warnings


def demangled(names):
    """What c++filt makes of each, without the hashes."""
    if not names:
        return {}
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True)
    return {name: INTERNAL.sub(r"\1", text).removeprefix("void ")
            for name, text in zip(names, done.stdout.splitlines(), strict=True)}


def read_logs(paths):
    rows, warnings = {}, []
    for path in paths:
        more, wrong = read_log(path.stem, path.read_text(errors="replace"))
        rows |= more
        warnings += wrong
    names = demangled(sorted({name for _, name, _ in rows}))
    renamed = {(unit, names[name], where): row for (unit, name, where), row in rows.items()}
    if len(renamed) != len(rows):
        fail("two kernels of a file have one name")
    return renamed, warnings


def version_of(nvcc):
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"\bV(\d+\.\d+\.\d+)", said)
    return match[1] if match else fail(f"{nvcc} --version does not say V1.2.3")


# ---- The table ----


def read_table(path):
    """The compiler's version and the rows by key."""
    with open(path, newline="") as file:
        first = file.readline()
        if not first.startswith("# nvcc "):
            fail(f"{path}: the first line must be '# nvcc VERSION'")
        rows = {tuple(row[c] for c in KEY): {c: int(row[c]) for c in NUMBERS}
                for row in csv.DictReader(file)}
    return first.split()[2], rows


def write_table(path, version, rows):
    with open(path, "w", newline="") as file:
        file.write(f"# nvcc {version}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key in sorted(rows):
            writer.writerow([*key, *(rows[key][c] for c in NUMBERS)])


def judge(rows, table, same_compiler):
    """What is wrong, a line each."""
    wrong = []
    shared = {key[2] for key in rows} & {key[2] for key in table}
    if not shared:
        return ["no architecture is both in the logs and in the table"]
    for key in sorted(set(rows) | set(table)):
        if key[2] not in shared:
            continue
        label = f"{key[0]}: {key[1]} for {key[2]}"
        if key not in rows or key not in table:
            if same_compiler:
                place = "the logs" if key not in rows else "the table"
                wrong.append(f"{label}: not in {place}; run it with --update")
            if key not in rows:
                continue
        row, limit = rows[key], table.get(key, dict.fromkeys(NUMBERS, 0))
        for column in ("spill_stores", "spill_loads"):
            if not row[column] <= limit[column]:
                wrong.append(f"{label}: {row[column]} bytes of {column}, not {limit[column]}")
        if not same_compiler or key not in table:
            continue
        if not row["registers"] <= limit["registers"] + MORE_REGISTERS:
            wrong.append(f"{label}: {row['registers']} registers, not {limit['registers']}")
        if not row["stack"] <= limit["stack"]:
            wrong.append(f"{label}: {row['stack']} bytes of stack, not {limit['stack']}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=pathlib.Path, required=True)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("logs", type=pathlib.Path, nargs="*")
    options = parser.parse_args()
    if not options.logs:
        print("registers: this build has no CUDA")
        return 77
    version = version_of(options.nvcc)
    rows, warnings = read_logs(options.logs)
    if not rows:
        fail("the logs name no kernel")
    if options.update:
        write_table(options.table, version, rows)
        return 0
    if not options.table.exists():
        print(f"registers: there is no {options.table}; --update writes it")
        return 1 if warnings else 77
    made_with, table = read_table(options.table)
    wrong = warnings + judge(rows, table, version == made_with)
    for line in wrong:
        print(f"registers: {line}", file=sys.stderr)
    most = max(rows.values(), key=lambda row: row["registers"])["registers"]
    print(f"{len(rows)} kernels, at most {most} registers, nvcc {version}, "
          f"the table's is {made_with}; {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
