#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SOURCE: README's tables from files of results (scripts/gpu-table, scripts/performance-table), of which
tests/cli/tables holds small ones (performance/maker-a, performance/maker-b: two processors) and, in README.md, what they
give: one of their rows is the right one for each cell, the others differ from it in one respect. No two columns of a row are equal, so that one taken for
another shows."""
import csv
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "scripts"))
from readme_tables import short  # noqa: E402

TABLES = SOURCE / "tests/cli/tables"
FLAGS = ("dirty", "ratio_dirty", "holds")
failed = 0


def check(what, right):
    global failed
    failed += not right
    print(f"{'ok  ' if right else 'FAIL'}  {what}")


def run(script, data, readme, *words):
    data = data / "performance" if script == "performance-table" else data
    command = [sys.executable, SOURCE / "scripts" / script, "--data", data, *words, readme]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode


def make(data, readme):
    return [run("gpu-table", data, readme), run("performance-table", data, readme)]


def check_columns(path):
    with open(path, newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            cells = [text for name, text in row.items() if text and name not in FLAGS]
            twice = sorted({text for text in cells if cells.count(text) > 1})
            check(f"{path.name} line {number}: columns differ {twice or ''}", not twice)


def main():
    times = {0.00012: "120 µs", 0.0012: "1.2 ms", 0.9: "900 ms", 1.236: "1.24 s", 123.4: "123 s"}
    check("times are in the unit that fits", [short(seconds) for seconds in times] == list(times.values()))
    for path in sorted(TABLES.rglob("*.csv")):
        check_columns(path)
    with tempfile.TemporaryDirectory(prefix="attnum-tables-") as name:
        folder = pathlib.Path(name)
        expected, made = (TABLES / "README.md").read_text(), folder / "made.md"
        lines = expected.splitlines(keepends=True)
        in_table = [sum("begin -->" in line for line in lines[:i]) > sum("end -->" in line for line in lines[:i + 1])
                  for i in range(len(lines))]
        made.write_text("".join(line for line, skip in zip(lines, in_table) if not skip or "<!--" in line))
        empty = made.read_text()
        for script in ("gpu-table", "performance-table"):
            check(f"{script} --check: other tables are told", run(script, TABLES, made, "--check") == 1)
        check("--check writes nothing", made.read_text() == empty)
        check("tables are made", make(TABLES, made) == [0, 0])
        check("they are those expected", made.read_text() == expected)
        if made.read_text() != expected:
            print(made.read_text())
        for script in ("gpu-table", "performance-table"):
            check(f"{script} --check: the same tables are told", run(script, TABLES, made, "--check") == 0)

        data = folder / "data"
        shutil.copytree(TABLES, data)
        maker = data / "performance/maker-a"
        rates = (maker / "bench.csv").read_text()
        (maker / "bench.csv").write_text(rates.replace("24,25,26,,0", "24,25,26,,1"))
        run("performance-table", data, made)
        first, other = expected.split("**another processor")
        check("shares of rates that other processes disturbed are marked, of this machine", made.read_text() ==
              re.sub(r"(\| \d+ %) \|", r"\1\\* |", first) + "**another processor" + other)
        header, *rows = rates.splitlines()
        (maker / "bench.csv").write_text("\n".join([header + ",check"] + [
            row + (",fail" if ",0.0125," in row else ",pass") for row in rows]) + "\n")
        run("performance-table", data, made)
        check("the time of a wrong result is marked", expected.count("| 12.5 ms |") == 1 and
              made.read_text() == expected.replace("| 12.5 ms |", "| 12.5 ms **wrong** |"))
        (maker / "peers.csv").unlink()
        (maker / "growth.png").unlink()
        run("performance-table", data, made)
        check("without peers the machine is bench.csv's", "**the machine, cc 1.2, " in made.read_text())
        check("without a picture none is shown", "one forward call, f32, 2 heads" in made.read_text() and
              "![" not in made.read_text())
        for path in data.rglob("*.csv"):
            path.unlink()
        (data / "gpu/versions.json").unlink()
        make(data, made)
        check("without files the tables say so", all(
            f"No {what} recorded yet." in made.read_text() for what in ("GPU run is", "times are", "growth is")))
        made.write_text(expected)
        check("a folder that is not there is an error", make(folder / "none", made) == [2, 2])
        check("after which the tables are as they were", made.read_text() == expected)
        made.write_text("no marks\n")
        check("marks that are missing are an error", make(TABLES, made) == [3, 3])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
