# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the scripts that make bench/README's tables: rows of CSV files, and the text between two marks."""
import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def rows_of(path):
    """The rows of a CSV file; none if it is missing."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def short(seconds):
    value = float(seconds)
    return f"{value * 1e6:.3g} µs" if value < 1e-3 else f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def commits(rows):
    """The commits of rows, each once, as a text."""
    names = list(dict.fromkeys(row["commit"] for row in rows))
    return f"commit{'s' if len(names) > 1 else ''} " + ", ".join(f"`{name}`" for name in names)


def replace_table(name, table, readme, check):
    """Puts table between the marks of that name in the file. With check nothing is written, and the result is
    1 if the page has other text there."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    path = pathlib.Path(readme)
    text = path.read_text()
    if text.count(begin) != 1 or text.count(end) != 1:
        print(f"{path}: expected one '{begin}' and one '{end}'", file=sys.stderr)
        return 3
    before, rest = text.split(begin)
    made = f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"
    if check:
        return 0 if made == text else 1
    path.write_text(made)
    return 0
