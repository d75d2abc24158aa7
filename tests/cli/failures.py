#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PROGRAM PRELOAD [--all] [--only NAME,...] [--k KIND:K]: every verb on a machine that fails.
PROGRAM PRELOAD --valgrind [--only NAME,...]: every verb once under valgrind.

PRELOAD (failures.c) is preloaded into the program and lets the k-th allocation, the k-th call for a
file or the k-th for a process or thread fail; file size limits let writes fail inside stdio. The
program must then do one of two things:

  end with 3, one line on stderr that says why, and each result as it is without failures or missing;
  end as it does without failures, with the same stdout and the same results.

By default a few k of each command run, the same ones every time; with --all every k up to MOST of each
kind, and a few hundred beyond. Exits with 0 if all went so, 1 if not.

LLVM's OpenMP runtime, which clang's programs have, ends the process by a signal where it lacks memory, a file or a
thread: no program can answer that, and failures are not tried with it (exit code 77).

Under valgrind a run must end as it does without, read no memory that nobody wrote or that is not its own,
and leave none behind that nothing points to. Exits with 77 where there is no valgrind.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from pictures import write_pictures

MOST = 300
KINDS = ("memory", "files", "processes")
GROWTH = "spectral/norm-growth --quick --input smooth --samples 1 --m 4,9,16"
# name, arguments, how many k of each kind run by default. {in} holds what set_up makes.
COMMANDS = (
    ("run", f"run {GROWTH} --threads 1 --out out", 3),
    ("run-threads", f"run {GROWTH} --threads 2 --format json --out out", 2),
    ("run-photographs", "run convergence/initialisation --quick --samples 1 --stage 3 --out out", 0),
    ("run-maps", "run networks/maps --quick --network sima --threads 1 --out out", 1),
    ("run-shard", f"run {GROWTH} --threads 1 --shard 1/2 --out out", 5),
    ("run-complete", f"run {GROWTH} --resume --format json --out {{in}}/whole", 2),
    ("merge", "merge {in}/shards --out out", 3),
    ("claims", "claims S01 --out out", 1),
    ("claims-certified", "claims S10 U01", 1),
    ("claims-evidence", "claims S23", 1),
    ("inspect", "inspect {in}/case/sima-paper/tokens.npy --quick --html out/x.html --out out", 1),
    ("inspect-landmarks", "inspect {in}/case/sima-paper/tokens.npy --quick --layout bhnd --landmarks "
     "{in}/case/sima-paper/values.npy --out out", 1),
    ("check", "check {check}", 2),
    ("check-html", "check {check} --html out/x.html", 1),
    ("check-emit", "check --emit-case out --operator sima/paper --n 9,16 --d 8", 2),
    ("check-emit-tokens", "check --emit-case out --operator sima/paper --layout bhnd --tokens "
     "{in}/case/sima-paper/tokens.npy", 1),
    ("regress-files", "regress {in}/golden.csv --against {in}/golden.csv", 4),
    ("regress", "regress --operator sima --input smooth --n 64 --storage native --out out", 0),
    ("bench", "bench exp --quick --threads 1 --out out", 0),
    ("bench-memory", "bench memory --quick --operator sima --n 784,1568 --threads 1 --out out", 14),
    ("bench-emit", "bench --emit-tokens out --operator sima --n 16", 7),
    ("train", "train --dataset {in} --operator xnorm --epochs 1 --patch 4 --threads 1 --out out", 1),
    ("report", "report {in}/whole", 2),
    ("list", "list experiments", 5),
    ("help", "run spectral/bounds --help", 4),
    ("mistake", "run spectral/bonds", 4),
)
SECONDS, MOST_REASONS = 60, 4
# What a process has that ends by _exit after a fork is its parent's.
VALGRIND = ("-q", "--leak-check=full", "--show-leak-kinds=definite,indirect", "--error-exitcode=99",
            "--errors-for-leak-kinds=definite,indirect", "--child-silent-after-fork=yes")
VALGRIND_SECONDS = 600
# The first takes minutes; the other starts itself as /proc/self/exe, which is valgrind.
NOT_UNDER_VALGRIND = ("run-photographs", "claims-evidence")


class Harness:
    def __init__(self, program, preload, folder):
        self.program, self.preload, self.folder = program, preload, folder
        self.inputs = folder / "in"
        self.environment = {
            "PATH": "/nonexistent", "LC_ALL": "C", "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive",
            "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(folder / "tmp")}
        if platform.machine() == "x86_64":
            # OpenBLAS's kernels of AVX-512 for small matrices allocate, and do not look at what they get.
            self.environment["OPENBLAS_CORETYPE"] = "Prescott"
        self.failed = self.runs = 0

    def start(self, words, limit=None, under=(), seconds=SECONDS, **more):
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        shutil.rmtree(self.folder / "tmp", ignore_errors=True)
        (self.folder / "tmp").mkdir()
        (self.folder / "work/out").mkdir(parents=True)

        def set_limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        self.runs += 1
        process = subprocess.Popen(
            [*under, self.program, *words], cwd=self.folder / "work", env=self.environment | more,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=set_limits, start_new_session=True)
        try:
            stdout, stderr = process.communicate(timeout=seconds)
            return process.returncode, stdout, stderr.decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"more than {seconds} s", b"", ""

    def must(self, *words):
        code, _, stderr = self.start(words)
        if code != 0:
            sys.exit(f"attnum {' '.join(words)}: exit code {code}: {stderr}")

    def set_up(self):
        self.inputs.mkdir()
        for i in ("1", "2"):
            self.must("run", *GROWTH.split(), "--shard", f"{i}/2", "--out", f"{self.inputs}/shards")
        self.must("run", *GROWTH.split(), "--out", f"{self.inputs}/whole")
        self.must("check", "--emit-case", f"{self.inputs}/case", "--operator", "sima/paper", "--n", "16",
                  "--d", "8")
        manifest = json.loads((self.inputs / "case/manifest.json").read_text())
        self.check = [re.sub(r"^((?:\w+=)?)(?=sima-paper/)", rf"\1{self.inputs}/case/", word)
                      for word in manifest["cases"][0]["check"]] + ["--dtype", "f64"]
        self.must("regress", "--operator", "sima", "--input", "smooth", "--n", "64", "--out", f"{self.inputs}")
        os.rename(self.inputs / "regress.csv", self.inputs / "golden.csv")
        write_pictures(self.inputs, "train", 128)
        write_pictures(self.inputs, "t10k", 4)

    def words(self, text):
        return [word for part in text.split()
                for word in (self.check if part == "{check}" else [part.replace("{in}", str(self.inputs))])]


def sober(text):
    """Without what differs from run to run."""
    text = re.sub(rb"\(\d+\.\d s\)| sum [0-9a-f]{16}", b"", text)
    return re.sub(rb'"date":\s*"[^"]*"|"seconds":\s*[0-9.e+]+', b"", text)


def results(folder):
    """What lies there under a final name: but for dates, the machine's times and plots' logs."""
    return {str(path.relative_to(folder)): sober(path.read_bytes()) for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(".")}


def same_result(name, found, expected, ended_well):
    """A journal or shard may end early where the run did: --resume takes what is whole."""
    if re.search(r"\.journal$|\.shard-", name) and not ended_well:
        return True
    return name in expected and found == expected[name]


def sample(count, most):
    """Every k up to most, and as many again spread over the rest; a few: spread over all, the last too."""
    if most == MOST:
        return [*range(1, min(count, most) + 1), *range(most + 1, count + 1, max(1, (count - most) // most))]
    return sorted({round(count * (i + 1) / most) for i in range(most)} - {0})


def reasons(stderr):
    """What is said but for notes, and for libgomp's own line before ours. Where memory runs out in two
    threads at once, the line of one may be inside that of the other."""
    ours = re.sub(r"libgomp: ?(?=attnum: )", "", re.sub(r" ?Out of memory allocating \d+ bytes\n?", "", stderr))
    return [line for line in ours.splitlines()
            if line and not line.startswith(("attnum: note: ", "libgomp:"))]


def is_empty_soon(folder):
    """A folder of claims goes after the program has ended."""
    for _ in range(100):
        if not any(folder.iterdir()):
            return True
        time.sleep(0.05)
    return False


def wrong(h, name, expected, got, most_reasons):
    """What is wrong with a run that met a failure; nothing if all is well."""
    timed = name in ("bench", "bench-memory", "train")
    code, stdout, stderr = got
    found = results(h.folder / "work/out")
    for path, content in found.items():
        if not timed and not same_result(path, content, expected["results"], code == expected["code"]):
            yield f"{path} is not what it is without a failure ({len(content)} bytes)"
    for left in (h.folder / "work/out").rglob(".*.tmp"):
        yield f"{left.name} stays"
    if not is_empty_soon(h.folder / "tmp"):
        yield "a folder stays in TMPDIR"
    if code == expected["code"]:
        if not timed and sober(stdout) != expected["stdout"]:
            yield f"exit code {code}, but another stdout"
        if set(found) != set(expected["results"]):
            yield f"exit code {code}, but not all results"
    elif code != 3:
        yield f"exit code {code}"
    elif stdout.count(b"% attnum ") > 1:
        yield "exit code 3 and stdout written twice"
    elif not all(line.startswith("attnum: ") for line in reasons(stderr)):
        yield "a line on stderr that is not ours"
    elif not 1 <= len(reasons(stderr)) <= most_reasons:
        yield f"exit code 3 and {len(reasons(stderr))} lines on stderr"


def try_one(h, name, words, expected, how, **more):
    got = h.start(words, **more)
    faults = list(wrong(h, name, expected, got, MOST_REASONS if how.endswith("+") else 1))
    if faults:
        h.failed += 1
        lines = " | ".join(got[2].splitlines()[:3])
        print(f"FAIL  {name} {how}: {'; '.join(faults)} [{lines}]", flush=True)


def try_command(h, name, text, most, everything):
    words, counted, before = h.words(text), h.folder / "counts", h.runs
    if everything:
        most = MOST
    if most == 0:
        return
    h.start(words)
    code, stdout, stderr = h.start(words, LD_PRELOAD=str(h.preload), FAILURE_COUNT=str(counted))
    expected = {"code": code, "stdout": sober(stdout), "results": results(h.folder / "work/out")}
    counts = dict(line.split() for line in counted.read_text().splitlines())
    print(f"      {name}: exit code {code}, {counts}", flush=True)
    if code not in (0, 1, 2):
        sys.exit(f"{name}: exit code {code} without a failure: {stderr}")
    for kind in KINDS:
        for i, k in enumerate(sample(int(counts[kind]), most)):
            for more in ("", "+") if i % 4 == 1 else ("",):
                try_one(h, name, words, expected, f"{kind}:{k}{more}",
                        LD_PRELOAD=str(h.preload), FAILURE=f"{kind}:{k}{more}")
    for limit in (0, 1, 100, 1000, 4096, 5000, 20000) if everything else (1000,):
        if any(len(content) > limit for content in expected["results"].values()):
            try_one(h, name, words, expected, f"file size limit {limit}", limit=limit)
    print(f"      {name}: {h.runs - before} runs", flush=True)


def try_valgrind(h, valgrind, name, text):
    words = h.words(text)
    expected, _, _ = h.start(words)
    code, _, stderr = h.start(words, under=(valgrind, *VALGRIND), seconds=VALGRIND_SECONDS)
    said = [line for line in stderr.splitlines() if line.startswith("==")]
    h.failed += code != expected or bool(said)
    print("\n".join([f"{'FAIL' if code != expected or said else '    '}  {name}: exit code {code}, expected {expected}",
                     *said]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("preload", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="many more")
    parser.add_argument("--only", metavar="NAME,...", help="these commands alone")
    parser.add_argument("--k", metavar="KIND:K", help="this failure alone")
    parser.add_argument("--valgrind", action="store_true", help="under valgrind, on a machine that does not fail")
    options = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if options.valgrind and not valgrind:
        print("there is no valgrind")
        return 77
    libraries = subprocess.run(["ldd", options.program], capture_output=True, text=True).stdout
    if "libomp" in libraries and not options.valgrind:
        print("the program has LLVM's OpenMP runtime, which ends it by a signal")
        return 77
    with tempfile.TemporaryDirectory(prefix="attnum-failures-") as folder:
        h = Harness(options.program.resolve(), options.preload.resolve(), pathlib.Path(folder))
        h.set_up()
        for name, text, most in COMMANDS:
            if options.only and name not in options.only.split(","):
                continue
            if options.valgrind:
                if name not in NOT_UNDER_VALGRIND:
                    try_valgrind(h, valgrind, name, text)
            elif options.k:
                print(h.start(h.words(text), LD_PRELOAD=str(h.preload), FAILURE=options.k))
            else:
                try_command(h, name, text, most, options.all)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{h.runs} runs, {h.failed} went wrong, {used.ru_utime + used.ru_stime:.1f} s of CPU time")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
