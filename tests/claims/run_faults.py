#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_faults.py [--list] [--only NAME[,NAME]] [--out FILE.csv]

Seeds one fault at a time into a copy of the sources, from faults.toml, builds the copy and runs the
fault's checks: each must fail with the fault, and pass without it. --list only holds the list against
the sources: every text to be replaced must stand in its file exactly once.

A check is "SUITE FILTER", a Criterion program of tests/ and a pattern of its tests, or "claims ID...",
the verdicts of these statements, which must differ from data/golden/verdicts.csv.
"""
import argparse
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = shutil.ignore_patterns(".git", "build*", "results", "carry")


def read_faults():
    with open(ROOT / "tests/claims/faults.toml", "rb") as file:
        return tomllib.load(file)["fault"]


def wrong_entries(faults):
    """What does not fit the sources, one line each."""
    wrong = []
    for fault in faults:
        count = (ROOT / fault["file"]).read_text().count(fault["find"])
        if count != 1:
            wrong.append(f"{fault['name']}: its text stands {count} times in {fault['file']}")
        if fault["find"] == fault["replace"]:
            wrong.append(f"{fault['name']}: replaces a text by itself")
    names = [fault["name"] for fault in faults]
    wrong += [f"{name}: stands twice" for name in sorted({n for n in names if names.count(n) > 1})]
    return wrong


def environment():
    return os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": str(os.cpu_count() or 1)}


def targets(faults):
    suites = {check.split()[0] for fault in faults for check in fault["checks"]}
    return [
        "experiments/attnum" if suite == "claims" else f"tests/{suite}/test_{suite}" for suite in sorted(suites)
    ]


def build(copy, names):
    """Whether the copy compiles."""
    return subprocess.run(["ninja", "-C", copy / "build", *names], stdout=subprocess.DEVNULL).returncode == 0


def golden_verdicts():
    with open(ROOT / "data/golden/verdicts.csv", newline="") as file:
        return {row["id"]: row["verdict"] for row in csv.DictReader(file)}


def verdicts_hold(copy, ids):
    with tempfile.TemporaryDirectory() as out:
        command = [copy / "build/experiments/attnum", "claims", *ids, "--out", out]
        done = subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            return False
        with open(pathlib.Path(out) / "claims.csv", newline="") as file:
            found = {row["id"]: row["verdict"] for row in csv.DictReader(file)}
    golden = golden_verdicts()
    return all(found[name] == golden[name] for name in ids)


def passes(copy, check):
    kind, *rest = check.split()
    if kind == "claims":
        return verdicts_hold(copy, rest)
    # Criterion is green when a filter matches nothing, so it must say that it ran something.
    command = [copy / f"build/tests/{kind}/test_{kind}", "--jobs", "1", "--filter", " ".join(rest)]
    try:
        done = subprocess.run(command, env=environment(), cwd=copy / "build", capture_output=True, timeout=300)
    except subprocess.TimeoutExpired:
        return False
    if b"Tested: " not in done.stderr + done.stdout or b"Tested: \x1b[0;34m0" in done.stderr + done.stdout:
        sys.exit(f"run_faults: '{check}' runs no test")
    return done.returncode == 0


def set_up():
    copy = pathlib.Path(tempfile.mkdtemp(prefix="attnum-faults-"))
    shutil.copytree(ROOT, copy, ignore=SKIPPED, dirs_exist_ok=True)
    subprocess.run(["meson", "setup", copy / "build", copy], stdout=subprocess.DEVNULL, check=True)
    return copy


def seed(copy, fault, names):
    """The checks that let the fault pass; None if it does not compile."""
    path = copy / fault["file"]
    sound = path.read_text()
    path.write_text(sound.replace(fault["find"], fault["replace"]))
    survived = [check for check in fault["checks"] if passes(copy, check)] if build(copy, names) else None
    path.write_text(sound)
    return survived


def run(faults, out):
    copy, names = set_up(), targets(faults)
    missed = 0
    try:
        if not build(copy, names):
            sys.exit("run_faults: the sources do not build")
        for check in sorted({check for fault in faults for check in fault["checks"]}):
            if not passes(copy, check):
                sys.exit(f"run_faults: '{check}' fails without any fault")
        rows = []
        for number, fault in enumerate(faults, 1):
            survived = seed(copy, fault, names)
            caught = survived == []
            missed += not caught
            rows.append((fault["name"], fault["kind"], fault["what"], fault["file"], "; ".join(fault["checks"]), "yes" if caught else "no"))
            why = "does not compile" if survived is None else "not by: " + "; ".join(survived)
            print(f"{number}/{len(faults)} {fault['name']}: {'caught' if caught else 'NOT CAUGHT, ' + why}", flush=True)
    finally:
        shutil.rmtree(copy)
    if out:
        with open(out, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("fault", "kind", "what", "file", "checks", "caught"))
            writer.writerows(rows)
    print(f"{len(faults) - missed} of {len(faults)} faults caught")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    options = parser.parse_args()
    faults = read_faults()
    wrong = wrong_entries(faults)
    if wrong:
        sys.exit("\n".join(wrong))
    if options.list:
        print(f"{len(faults)} faults fit the sources")
        return 0
    chosen = [f for f in faults if not options.only or f["name"] in options.only.split(",")]
    if not chosen:
        sys.exit(f"run_faults: no fault is called '{options.only}'")
    return run(chosen, options.out)


if __name__ == "__main__":
    sys.exit(main())
