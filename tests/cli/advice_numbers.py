#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""advice_numbers.py FOLDER: whether every number behind the advice of an inspection is, digit by digit,
the one in the table it is named after, and every line of advice has some. Exits 1 and says where not."""
import csv
import pathlib
import sys


def rows(name):
    with open(pathlib.Path(sys.argv[1]) / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def place(row):
    return row["batch"], row["head"], row["m"]


main = {place(row): row for row in rows("inspect") if row["main"] == "true"}
numbers, known = rows("inspect_advice_numbers"), {}
for key, row in main.items():
    known[key + ("",)] = row
for name, column in ("inspect_inverses", "inverse"), ("inspect_precisions", "precision"):
    for row in rows(name):
        if row["sampling"] == main[place(row)]["sampling"]:
            known[place(row) + (row[column],)] = row

wrong, found = [], 0
for number in numbers:
    row = known.get(place(number) + (number["of"],))
    if row is None or number["number"] not in row:
        continue  # of all heads, or of no column
    value = {"true": "1", "false": "0"}.get(row[number["number"]], row[number["number"]])
    found += 1
    if (float(value) if value else None) != (float(number["value"]) if number["value"] else None):
        wrong.append(f"{number}: its table has {value}")
silent = {row["rule"] for row in rows("inspect_advice")} ^ {number["rule"] for number in numbers}
if silent or 2 * found < len(numbers):
    wrong.append(f"{found} of {len(numbers)} numbers found; without advice or numbers: {sorted(silent)}")
print("\n".join(wrong) or f"{found} of {len(numbers)} numbers")
sys.exit(1 if wrong else 0)
