#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SOURCE: no line of a figure goes back: those of several seeds are apart, and points are in the order of n or m, not in
that of --n and --m."""
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
NUMBERS = ("digits", "order_difference", "first_largest", "first_subnormal", "first_vanished", "factors_subnormal",
           "factors_vanished", "limit")
failed = 0


def check(what, holds):
    global failed
    print("ok" if holds else "FAIL", what)
    failed += not holds


def half(sizes, seeds):
    """Rows of attention/half, every number another one."""
    rows = ["input,norm,storage,norm_form,order,d,n,seed," + ",".join(NUMBERS)]
    inputs = "normal", "aligned", "normal-x64", "dead-channel", "photos"
    for i, row in enumerate(itertools.product(inputs, seeds, sizes, ("l1", "l2", "none"), ("f64", "f32", "bf16", "f16"),
                                              ("wide", "stored", "summed"), ("tokens", "channels"))):
        name, seed, n, norm, storage, form, order = row
        rows.append(f"{name},{norm},{storage},{form},{order},32,{n},{seed}," +
                    ",".join(str(0.1 + 37 * (i + k) % 101 / 400) for k in range(len(NUMBERS))))
    return rows


def growth(sizes, landmarks):
    """Rows of bench_growth."""
    rows = ["operator,inverse,over,n,m,d,heads,threads,seconds,bytes_io,bytes_measured"]
    for threads, name, n in itertools.product((1, 2), ("soft", "softmax"), sizes):
        rows.append(f"{name},,n,{n},49,32,2,{threads},{1e-7 * n * (1 + threads) * len(name)},{512 * n},{10 * n * len(name)}")
    for threads, inverse, m in itertools.product((1, 2), ("nr-paper", "pivoted-cholesky"), landmarks):
        rows.append(f"soft,{inverse},m,12288,{m},32,2,{threads},{1e-4 * m * (1 + threads) * len(inverse)},1,")
    return rows


def draw(folder, script, rows):
    """The lines of a figure, no two the same, each its points; and its words."""
    csv, svg = folder / "a.csv", folder / "a.svg"
    csv.write_text("\n".join(rows) + "\n")
    subprocess.run(["gnuplot", "-e", f"csv='{csv}'; terminal='svg'; out='{svg}'", SOURCE / "experiments/common/plots.gp",
                    SOURCE / "experiments" / script], check=True)
    text = svg.read_text()
    pieces = [piece for d in re.findall(r"<path stroke='rgb[^>]*\bd='M([^']*)'", text) for piece in d.split("M")]
    lines = {tuple((float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", piece)) for piece in pieces}
    return [line for line in lines if len(line) > 2], text  # a key's sample and the grid have two points


def go_right(lines):
    return all(a[0] < b[0] for line in lines for a, b in zip(line, line[1:]))


if not shutil.which("gnuplot"):
    print("left out: no gnuplot")
    sys.exit(77)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    ones = draw(folder, "attention/half.gp", half((49, 196, 784, 3136), (1,)))[0]
    check("attention/half draws lines", len(ones) > 20 and go_right(ones))
    lines, words = draw(folder, "attention/half.gp", half((3136, 49, 784, 196), (7, 1, 71)))
    check("attention/half has a line for each of three seeds", len(lines) == 3 * len(ones) and go_right(lines))
    check("attention/half names each of them once", words.count("<title>norms summed in f16</title>") == 1)
    check("attention/half says what it leaves out", "not drawn: inputs aligned" in words and "ℓ2 norms" in words)
    (folder / "a_fits.csv").write_text("operator,threads,over,quantity,exponent\nsoft,1,n,seconds,1.5\n")
    lines = draw(folder, "bench/growth.gp", growth((3136, 784, 1568), (64, 16, 32)))[0]
    check("bench/growth draws its lines in the order of n and m", len(lines) == 2 + 11 and go_right(lines))
sys.exit(failed > 0)
