#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""same_tables.py JSON FOLDER: whether a JSON of the program holds the tables of all CSVs below the
folder, cell by cell, and nothing else. Exits 1 and says where it does not."""
import csv
import json
import pathlib
import sys


def text_of(value):
    """A JSON value as the CSV has it; numbers are compared as numbers."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def agree(value, field):
    value = text_of(value)
    if isinstance(value, str):
        return value == field
    return field != "" and type(value)(field) == value


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


with open(sys.argv[1], encoding="utf-8") as file:
    found = json.load(file, parse_constant=refuse_constant)
files = sorted(pathlib.Path(sys.argv[2]).rglob("*.csv"))
wrong, tables = [], 0
for path in files:
    named = [owner for owner, own in found.items() if path.stem in own]
    folder = path.relative_to(sys.argv[2]).parent.as_posix()
    named = [owner for owner in named if folder in (owner, owner.rpartition("/")[0] or ".")]
    if len(named) != 1:
        wrong.append(f"{path}: in {named}")
        continue
    rows = found[named[0]][path.stem]
    tables += 1
    with open(path, newline="", encoding="utf-8") as file:
        header, *fields = csv.reader(file)
    if len(rows) != len(fields):
        wrong.append(f"{path}: {len(rows)} of {len(fields)} rows")
    for number, (row, record) in enumerate(zip(rows, fields)):
        if list(row) != header or not all(map(agree, row.values(), record)):
            wrong.append(f"{path}: row {number}: {row} is not {record}")
            break
if tables != sum(map(len, found.values())) or not tables:
    wrong.append(f"{sum(map(len, found.values()))} tables, {tables} of them files")
print("\n".join(wrong) or f"{tables} tables")
sys.exit(1 if wrong else 0)
