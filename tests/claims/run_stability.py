#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_stability.py ATTNUM [ID...] [--out FILE.csv]

Runs `attnum claims` with 5 seeds, 1, 2 and 3 threads, and with OpenBLAS's kernels for several
processors, and holds every verdict against data/golden/verdicts.csv. Exits 1 if one differs.
"""
import argparse
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

CONFIGURATIONS = (
    [(f"seed {seed}", ["--seed", str(seed)], {}) for seed in range(1, 6)]
    + [(f"{threads} threads", ["--threads", str(threads)], {}) for threads in (1, 2, 3)]
    + [(f"kernels of {core}", [], {"OPENBLAS_CORETYPE": core}) for core in ("Prescott", "Sandybridge", "Haswell")]
)


def golden():
    with open(ROOT / "data/golden/verdicts.csv", newline="") as file:
        return {row["id"]: row["verdict"] for row in csv.DictReader(file)}


def run(attnum, ids, options, variables):
    """{id: verdict} of a run."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [attnum, "claims", *ids, *options, "--out", out],
            env=os.environ | variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            print(done.stderr, file=sys.stderr)
            return {}
        with open(pathlib.Path(out) / "claims.csv", newline="") as file:
            return {row["id"]: row["verdict"] for row in csv.DictReader(file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attnum")
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--out")
    options = parser.parse_args()
    expected = {name: verdict for name, verdict in golden().items() if not options.ids or name in options.ids}
    rows, changed = [], 0
    for name, arguments, variables in CONFIGURATIONS:
        found = run(options.attnum, options.ids, arguments, variables)
        different = [f"{i}: {found.get(i, 'none')}, expected {expected[i]}" for i in expected if found.get(i) != expected[i]]
        changed += bool(different)
        rows.append((name, len(expected), "; ".join(different)))
        print(f"{name}: {len(expected)} verdicts, {'; '.join(different) or 'none changed'}", flush=True)
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("configuration", "verdicts", "changed"))
            writer.writerows(rows)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
