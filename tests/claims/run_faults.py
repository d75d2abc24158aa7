#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Seeds faults into a copy of the sources, one at a time, and shows that each is caught.

For every fault of faults.toml the copy is rebuilt with it and the fault's checks are run: each must
pass without the fault and fail with it. A check is

  SUITE FILTER   tests of a Criterion program of tests/, one pattern with * and ?; emulated and fused
                 are those of tests/gpu with the emulated device, simd, matrix and singular are those of f32
  claims ID...   the verdicts of these statements, against data/golden/verdicts.csv
  cli check, inspect, machine, report, run, shards   tests/cli/test_check.sh, ...
  cli train, figures   tests/cli/test_train.py, ... (figures needs gnuplot)
  cli failures NAME...   tests/cli/failures.py --all, of these commands
  python FILTER  tests of tests/python, MODULE.CLASS.TEST with *; left out where the package cannot be built

The checks of a fault with `isa` run in that instruction set (ATTNUM_ISA), whichever this processor
would choose, or are simd, matrix and singular, which go through every set: the fault is in one copy
of lib/cpu alone. If the processor lacks the set they are left out, and a line says so. All other
checks run in the set that is chosen here.

The copy is in a temporary folder, which is removed at the end. Exits with 0 if every fault is
caught, 1 if one is not, 2 if the list does not fit the sources or a check fails without a fault.
"""
import argparse
import csv
import fnmatch
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ("meson.build", "meson_options.txt", "lib", "reference", "experiments", "python", "docs", "scripts",
         "tests", "data")
KINDS = (
    "wrong scale", "one step too few", "transposed factor", "sorted the wrong way",
    "a clamp left out", "a wrong norm", "a wrong sign", "a wrong comparison", "a wrong column",
    "the wrong copy", "a check left out", "a missing barrier", "a missing wait", "a wrong address",
    "a wrong limit", "a device left set", "an option ignored", "the wrong rows", "a failure ignored",
)
# Where a suite's program and tests are, unless in the folder of its name.
PROGRAMS = {
    "emulated": ("tests/gpu/test_emulated", ("tests/gpu/*.c", "tests/operators/*.c")),
    "fused": ("tests/gpu/test_fused", ("tests/gpu/test_[efm]*.c",)),
    "emulator": ("tests/emulator/test_emulator", ("tests/emulator/*.cpp",)),
    "train": ("tests/experiments/test_train", ("tests/experiments/test_train*.c",)),
    "simd": ("tests/operators/test_simd_f32", ("tests/operators/test_simd.c",)),
    "matrix": ("tests/operators/test_matrix_f32", ("tests/operators/test_matrix.c",)),
    "amx": ("tests/operators/test_bf16_products_amx", ("tests/operators/test_bf16_products.c",)),
    "singular": ("tests/operators/test_singular_f32", ("tests/operators/test_singular.c",)),
}
CLI = ("check", "inspect", "machine", "report", "run", "shards", "train", "figures", "failures")
ISAS = ("base", "avx2", "avx512")
# Checks of a fault with an instruction set. The program of the first one skips where the processor lacks it: PROBE.
SETS = ("operators", "simd", "matrix", "singular")
PROBE = "operators isa/products*"
SKIPPED = 77
TEST_SECONDS, CHECK_SECONDS, BUILD_SECONDS = 60, 300, 1800


def fail(text):
    print(f"run_faults: {text}", file=sys.stderr)
    sys.exit(2)


# ---- The list ----


def read_faults():
    with open(ROOT / "tests/claims/faults.toml", "rb") as file:
        return tomllib.load(file)["fault"]


def golden_verdicts():
    with open(ROOT / "data/golden/verdicts.csv", newline="") as file:
        return {row["id"]: row["verdict"] for row in csv.DictReader(file)}


def program_of(suite):
    """The program of a suite, and what its sources are called."""
    return PROGRAMS.get(suite, (f"tests/{suite}/test_{suite}", (f"tests/{suite}/*.c",)))


def tests_of(suite):
    """The tests that the sources of a suite define, as Criterion names them."""
    sources = [path.read_text() for name in program_of(suite)[1] for path in sorted(ROOT.glob(name))]
    pairs = re.findall(r"^(?:Test|Theory)\((?:\(.*\), )?(\w+),\s*(\w+)", "\n".join(sources), re.M)
    return ["/".join(pair) for pair in pairs]


def tests_of_python():
    """MODULE.CLASS.TEST of the package's tests."""
    for path in sorted(ROOT.glob("tests/python/test_*.py")):
        name = ""
        for kind, found in re.findall(r"^(class| +def) (\w+)", path.read_text(), re.M):
            name = found if kind == "class" else name
            if found.startswith("test_"):
                yield f"{path.stem}.{name}.{found}"


def wrong_check(check, golden):
    """What is wrong with a check, or nothing."""
    suite, *rest = check.split()
    if suite == "claims":
        unknown = [name for name in rest if name not in golden]
        if unknown or not rest:
            return f"'{check}': no verdict of {', '.join(unknown) or 'no statement'} is kept"
        return ""
    if suite == "python":
        return "" if len(rest) == 1 and fnmatch.filter(tests_of_python(), rest[0]) else f"'{check}' names no test"
    if suite == "cli":
        return "" if rest and rest[0] in CLI else f"'{check}' names no test of the command line"
    if len(rest) != 1 or not fnmatch.filter(tests_of(suite), rest[0]):
        return f"'{check}' names no test"
    return ""


def wrong_fault(fault, golden):
    """What of a fault does not fit the sources."""
    count = (ROOT / fault["file"]).read_text().count(fault["find"])
    if count != 1:
        yield f"its text appears {count} times in {fault['file']}"
    if fault["find"] == fault["replace"]:
        yield "replaces a text by itself"
    if fault.get("isa", ISAS[0]) not in ISAS:
        yield f"'{fault['isa']}' is no instruction set"
    if "isa" in fault and any(check.split()[0] not in SETS for check in fault["checks"]):
        yield f"only {', '.join(SETS)} run in one instruction set"
    if fault["kind"] not in KINDS:
        yield f"'{fault['kind']}' is no kind of fault"
    if not fault["checks"]:
        yield "has no check"
    yield from filter(None, (wrong_check(check, golden) for check in fault["checks"]))


def check_list(faults):
    golden, names = golden_verdicts(), [fault["name"] for fault in faults]
    wrong = [f"{fault['name']}: {text}" for fault in faults for text in wrong_fault(fault, golden)]
    wrong += [f"{name}: appears twice" for name in sorted(set(names)) if names.count(name) > 1]
    if wrong:
        fail("the list does not fit the sources\n" + "\n".join(wrong))


def label(check, isa):
    return f"{check} ({isa})" if isa else check


def labels(fault):
    return "; ".join(label(check, fault.get("isa")) for check in fault["checks"])


def print_list(faults):
    for fault in faults:
        print(f"{fault['name']:26} {fault['kind']:22} {labels(fault)}")
    print(f"{len(faults)} faults fit the sources")


# ---- Programs ----


def run_program(command, folder, seconds, isa=None, device=None):
    """(exit code, output) of a program; None for the code if it took too long. If it does, or if
    this program is interrupted, it ends with all that it started."""
    environment = os.environ | {
        "LC_ALL": "C", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": str(os.cpu_count() or 1),
        "TMPDIR": str(folder), "ATTNUM_ISA": isa or "auto", "ATTNUM_TEST_DEVICE": device or "cpu",
    }
    process = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if process.poll() is None:  # its number, and that of its group, are still its own
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def ended(code):
    return "took too long" if code is None else f"ended with {code}"


# ---- Checks: each returns how it fails, or nothing ----


class Lacking(Exception):
    """The processor or the compiler lacks the instruction set of a check, or the machine what Python's tests need."""


def is_built(copy, suite):
    return suite != "amx" or f"build {program_of(suite)[0]}:" in (copy / "build/build.ninja").read_text()


def failing_tests(copy, suite, pattern, isa):
    if not is_built(copy, suite):
        raise Lacking("this compiler, or this architecture, lacks the instruction set")
    program = copy / "build" / program_of(suite)[0]
    code, output = run_program(
        [program, "--jobs", "1", "--timeout", str(TEST_SECONDS), "--filter", pattern],
        copy / "scratch", CHECK_SECONDS, isa, "cuda" if suite in PROGRAMS else None)
    if code == SKIPPED:
        raise Lacking(output.strip())
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    counts = re.findall(r"Tested: (\d+) \| Passing: (\d+)", plain)
    if not counts:
        return f"{label(f'{suite} {pattern}', isa)}: {ended(code)}"
    tested, passed = map(int, counts[-1])
    if tested == 0:  # Criterion is green
        fail(f"'{suite} {pattern}' runs no test")
    if passed < tested:
        return f"{label(f'{suite} {pattern}', isa)}: {tested - passed} of {tested} fail"
    return f"{label(f'{suite} {pattern}', isa)}: {ended(code)}" if code != 0 else ""


def changed_verdicts(copy, ids, golden):
    with tempfile.TemporaryDirectory(dir=copy / "scratch") as out:
        program = copy / "build/experiments/attnum"
        command = [program, "claims", *ids, "--out", out]
        code, _ = run_program(command, copy / "scratch", CHECK_SECONDS)
        verdicts = pathlib.Path(out) / "claims.csv"
        if not verdicts.exists():
            return f"claims {' '.join(ids)}: no verdict, {ended(code)}"
        with open(verdicts, newline="") as file:
            found = {row["id"]: row["verdict"] for row in csv.DictReader(file)}
    changed = [f"{name}: {found[name]}, not {golden[name]}" for name in ids
              if found[name] != golden[name]]
    if not changed and code != 0:
        changed = [f"claims {' '.join(ids)}: {ended(code)}"]
    return ", ".join(changed)


def failing_commands(copy, name, *rest):
    program, library = copy / "build/experiments/attnum", copy / "build/tests/cli/libfailures.so"
    if name in ("train", "figures"):
        command = [sys.executable, copy / f"tests/cli/test_{name}.py", program if name == "train" else copy]
    elif name != "failures":
        command = ["sh", copy / f"tests/cli/test_{name}.sh", program, copy]
    else:
        command = [sys.executable, copy / "tests/cli/failures.py", program, library, "--all",
                   "--only", ",".join(rest)]
    code, output = run_program(command, copy / "scratch", CHECK_SECONDS)
    failed = len(re.findall(r"^FAIL ", output, re.M))
    return f"cli {name}: {failed} fail, {ended(code)}" if code != 0 else ""


def failing_python(copy, pattern):
    """By meson, which knows the Python of the build and the tests' environment."""
    command = ["meson", "test", "-C", copy / "build", "--no-rebuild", "--verbose", "python",
               f"--test-args=-k {pattern}"]
    code, output = run_program(command, copy / "scratch", CHECK_SECONDS)
    counts = re.search(r"^Ran (\d+) test", output, re.M)
    reason = re.search(r"^skipped: (.*)", output, re.M)
    if reason and not counts:
        raise Lacking(reason[1])
    if code == 0 and (not counts or int(counts[1]) == 0):
        fail(f"'python {pattern}' runs no test")
    failed = re.search(r"^FAILED \((.*)\)", output, re.M)
    return f"python {pattern}: {failed[1] if failed else ended(code)}" if code != 0 else ""


def how_it_fails(copy, check, isa, golden):
    suite, *rest = check.split()
    if suite == "python":
        return failing_python(copy, *rest)
    if suite == "cli":
        return failing_commands(copy, *rest)
    if suite == "claims":
        return changed_verdicts(copy, rest, golden)
    return failing_tests(copy, suite, *rest, isa)


# ---- The copy ----


def set_up(copy):
    for name in BUILT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name)
        else:
            shutil.copy2(ROOT / name, copy / name)
    (copy / "scratch").mkdir()
    # no check runs on a GPU, and nvcc takes minutes
    command = ["meson", "setup", copy / "build", copy, "-Dcuda=disabled"]
    code, output = run_program(command, copy, BUILD_SECONDS)
    if code != 0:
        fail(f"meson setup {ended(code)}\n{output}")


def targets(copy, checks):
    suites = sorted({check.split()[0] for check in checks})
    programs = {"claims": ["experiments/attnum"],
                "cli": ["experiments/attnum", "tests/cli/libfailures.so"],
                "python": ["experiments/attnum", "python-tests"]}
    return [name for s in suites if is_built(copy, s) for name in programs.get(s, [program_of(s)[0]])]


def build(copy, checks):
    """What ninja says if the programs that the checks need do not build, or nothing."""
    command = ["ninja", "-C", copy / "build", *targets(copy, checks)]
    code, output = run_program(command, copy, BUILD_SECONDS)
    return "" if code == 0 else output or ended(code)


def check_without_faults(copy, faults, golden):
    """The faults whose instruction sets are here."""
    start, lacking = time.monotonic(), set()
    checks = sorted({(check, fault.get("isa", "")) for fault in faults for check in fault["checks"]})
    checks = sorted({(PROBE, isa) for _, isa in checks if isa}) + checks
    output = build(copy, [check for check, _ in checks])
    if output:
        fail(f"the sources do not build\n{output}")
    for check, isa in checks:
        need = isa or check.split()[0]
        if need in lacking:
            continue
        try:
            how = how_it_fails(copy, check, isa, golden)
        except Lacking as reason:
            print(f"faults in {need} are left out: {reason}")
            lacking.add(need)
            continue
        if how:
            fail(f"without any fault: {how}")
    passed = sum((isa or check.split()[0]) not in lacking for check, isa in checks)
    print(f"{passed} checks pass without a fault, {time.monotonic() - start:.0f} s", flush=True)
    return [fault for fault in faults if fault.get("isa") not in lacking
            and not any(check.split()[0] in lacking for check in fault["checks"])]


MISSED = "NOT CAUGHT"


def seed(copy, fault, golden):
    """How every check catches the fault; begins with MISSED if one does not."""
    path = copy / fault["file"]
    sound = path.read_text()
    path.write_text(sound.replace(fault["find"], fault["replace"]))
    try:
        if build(copy, fault["checks"]):
            return f"{MISSED}: it does not compile"
        isa = fault.get("isa", "")
        found = [(check, how_it_fails(copy, check, isa, golden)) for check in fault["checks"]]
    finally:
        path.write_text(sound)
    missed = [label(check, isa) for check, how in found if not how]
    caught = "; ".join(how for _, how in found if how)
    return f"{MISSED} by {', '.join(missed)}; {caught}" if missed else caught


# ---- The run ----


COLUMNS = ("commit", "fault", "kind", "what", "file", "checks", "caught")


def commit():
    """The commit of the sources, with -dirty if they have changed since (evidence is no source);
    nothing without git."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!data/evidence")
        return git("rev-parse", "--short=7", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def read_rows(path):
    """The rows of an earlier run, by fault."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, newline="") as file:
        return {row["fault"]: row for row in csv.DictReader(file)}


def write_rows(path, rows, names):
    """Faults that are no longer in the list lose their row. The file is whole at any time."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in names if name in rows)
    os.replace(temporary, path)


def run(faults, out, names):
    start, golden, missed = time.monotonic(), golden_verdicts(), 0
    rows, at = read_rows(out), commit()
    with tempfile.TemporaryDirectory(prefix="attnum-faults-") as folder:
        copy = pathlib.Path(folder)
        set_up(copy)
        faults = check_without_faults(copy, faults, golden)
        for number, fault in enumerate(faults, 1):
            begun = time.monotonic()
            how = seed(copy, fault, golden)
            missed += how.startswith(MISSED)
            print(f"{number}/{len(faults)} {fault['name']}: {how} ({time.monotonic() - begun:.0f} s)", flush=True)
            if out:
                rows[fault["name"]] = dict(zip(COLUMNS, (
                    at, fault["name"], fault["kind"], fault["what"], fault["file"], labels(fault),
                    how)))
                write_rows(out, rows, names)
    print(f"{len(faults) - missed} of {len(faults)} faults caught in "
          f"{(time.monotonic() - start) / 60:.1f} minutes")
    return 1 if missed else 0


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true",
                        help="compare the list with the sources, print it and stop")
    parser.add_argument("--only", metavar="NAME,...", help="these faults alone")
    parser.add_argument("--out", metavar="FILE", help="a CSV of the faults and what caught them; rows of "
                        "faults that do not run now are kept")
    parser.add_argument("--resume", action="store_true",
                        help="leave out faults that FILE has a row of, from these sources")
    return parser.parse_args()


def choose(faults, names):
    if not names:
        return faults
    unknown = set(names.split(",")) - {fault["name"] for fault in faults}
    if unknown:
        fail(f"no fault is called '{sorted(unknown)[0]}'; --list prints them")
    return [fault for fault in faults if fault["name"] in names.split(",")]


def main():
    options = parse_options()
    faults = read_faults()
    check_list(faults)
    if options.list:
        print_list(faults)
        return 0
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        names, chosen = [fault["name"] for fault in faults], choose(faults, options.only)
        if options.resume and re.fullmatch("[0-9a-f]+", commit()):
            done = {name for name, row in read_rows(options.out).items()
                    if row.get("commit") == commit() and not row["caught"].startswith(MISSED)}
            chosen = [fault for fault in chosen if fault["name"] not in done]
        if not chosen:
            print("every fault has a row of these sources")
            return 0
        return run(chosen, options.out, names)
    except KeyboardInterrupt:
        print("run_faults: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
