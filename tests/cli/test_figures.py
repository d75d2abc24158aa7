#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SOURCE: what figures draw. No line goes back: those of several seeds are apart, and points are in the order of n or m,
not in that of --n and --m. And figures/NAME.txt keeps, for each figure, its words, its axes and shapes, the colours of its
curves, and how many points a curve has with the sums of their columns (and of their products with x), so that a column or a
legend taken for another shows. Rows are those of tests/experiments/finish, or made up here. With ATTNUM_TEST_WRITE=FOLDER
the files are written there from what is drawn now: read what git diff then shows."""
import html
import itertools
import math
import os
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


def invented(*at):
    """A number that hardly any other place has."""
    return 0.01 + math.sin(1 + sum((7 * k + 3) * x for k, x in enumerate(at))) ** 2


def maps():
    """The tables of attention/maps: two crops of 4 x 4 pixels and 2 x 2 patches, a map with a negative weight, and norms."""
    rows, image = ["kind,operator,variant,row,col,weight,query_row,query_col,sample,seed,stage"], []
    summary = ["operator,variant,kind,least,largest,photo,stage,sample,seed"]
    kinds = (("soft", "paper", "row"), ("xnorm", "paper", "pseudo-inverse"),
             ("sima", "l1", "query-norm"), ("sima", "l1", "key-norm"))
    for sample in range(2):
        for i, (operator, variant, kind) in enumerate(kinds):
            weights = [invented(sample, i, k) - (i == 1) * 0.5 for k in range(4)]
            rows += [f"{kind},{operator},{variant},{k // 2},{k % 2},{w},1,0,{sample},3,1" for k, w in enumerate(weights)]
            summary.append(f"{operator},{variant},{kind},{min(weights)},{max(weights)},a_b.png,1,{sample},3")
        image += [f"{k // 4},{k % 4},{11 * k + sample},{7 * k},{3 * k},a_b.png,{sample},3" for k in range(16)]
    return {"maps": rows, "maps_image": ["row,col,red,green,blue,photo,sample,seed"] + image, "maps_summary": summary}


def counts():
    """Rows of networks/counts: two papers, a network without an iterated inverse."""
    rows = ["paper,table,network,reading,counted_gmacs,params_ratio,gmacs_ratio,no_inverse_ratio"]
    for i, paper in enumerate(("SOFT", "SOFT", "SimA", "SimA")):
        rows.append(f"{paper},Tab. {i},net-{i},as printed,{1 + i},{0.9 + 0.1 * invented(i)},{1 + 0.1 * invented(i, 1)},"
                    + ("" if i == 3 else str(0.8 + 0.1 * invented(i, 2))))
    return {"counts": rows}


def accuracy():
    """Rows of networks/accuracy: two networks, changes that the figure knows and one that it does not."""
    known = ("steps-2 steps-3 steps-5 steps-10 exact gaussian pool random first l2 no-norm side-56 side-56-same-m bf16 f16 "
             "noise-0.25 noise-0.5 noise-1").split()
    rows = ["network,operator,change,pictures,accuracy,difference_error,verdict"]
    rows += [f"{network},{network[:4]},{change},1000,{invented(i, k) / 2},{invented(i, k, 1) / 50},"
             + ("" if change == "none" else ("no difference", "lower", "lower")[k % 3])
             for i, network in enumerate(("soft-code", "sima"))
             for k, change in enumerate(("none", *known, "other"))]
    return {"accuracy": rows}


def epochs():
    """The tables of networks/epochs: two runs, a median that was not reached, a network without an epoch."""
    measures = "condition ridge_condition residual inverse_residual inverse_steps eq12_error eq12_exact_error".split()
    rows = ["run,epoch,block,measure,matrices,missing,median,least,most"]
    for i, (run, epoch, block) in enumerate(itertools.product(("a", "b"), (2, 0, 1, ""), (0, 1))):
        for k, measure in enumerate(measures):
            lost = measure == "inverse_steps" and (epoch, block) == (1, 0)
            rows.append(f"{run},{epoch},{block},{measure},8,{5 * lost},{'' if lost else 2 + invented(i, k)},"
                        f"{1 + invented(i, k, 1)},{3 + invented(i, k, 2)}")
    return {"epochs": ["m,steps", "49,20"], "epochs_blocks": rows}


# What the rows of finish do not have, which figures show: other verdicts, other m of one input, certified values, floors.
OTHERS = {
    "accuracy_operators": lambda i, row: row.replace(",pass,", (",pass,", ",marginal,", ",FAIL,")[i % 3]),
    "spectral_eigenvalues": lambda i, row: row.replace("iid:0.3,9,", "iid:0.3,7,"),
    "spectral_norm_growth": lambda i, row: row.replace(
        ",false,false,,,,,,", (",false,false,,,,,,", ",false,false,1,2,,,200,", ",false,false,,,1,2,200,",
                               ",true,false,,,,,,", ",false,true,,,,,,")[i % 5]),
    "spectral_sampling": lambda i, row: row.replace(",false,", (",false,", ",true,")[i % 7 == 0]),
}


def kept(name):
    """The tables of an experiment: its raw rows, or what finish makes of them, and its other tables."""
    folder, stem = SOURCE / "tests/experiments/finish", name.split("_", 1)[1]
    file = name.replace("norm_growth", "norm-growth")
    first = name if name == "bench_growth" else stem
    found = {first: (folder / f"{file}.csv").read_text().splitlines()}
    for block in (folder / f"{file}.txt").read_text().split("\n\n"):
        title, *rows = block.strip().split("\n")
        if re.fullmatch(first + r"(_\w+)?", title):
            found[title] = rows
    if name in OTHERS:
        found[first] = [OTHERS[name](i, row) for i, row in enumerate(found[first])]
    return found


def plot(csv, script, svg):
    """The picture, and what gnuplot says."""
    ran = subprocess.run(["gnuplot", "-d", "-e", f"csv='{csv}'; terminal='svg'; out='{svg}'; run='as run'",
                          SOURCE / "experiments/common/plots.gp", script], stderr=subprocess.PIPE, text=True)
    return (svg.read_text(), ran.stderr) if ran.returncode == 0 else sys.exit(f"{script}: {ran.stderr}")


def draw(folder, script, rows):
    """The lines of a figure, no two the same, each its points; and its words."""
    csv = folder / "a.csv"
    csv.write_text("\n".join(rows) + "\n")
    text, _ = plot(csv, SOURCE / "experiments" / script, folder / "a.svg")
    pieces = [piece for d in re.findall(r"<path stroke='rgb[^>]*\bd='M([^']*)'", text) for piece in d.split("M")]
    lines = {tuple((float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", piece)) for piece in pieces}
    return [line for line in lines if len(line) > 2], text  # a key's sample and the grid have two points


def printing(text, values):
    """A script that writes the points of its plots to a file, as numbers, instead of drawing them."""
    statements, in_table = [], False
    for statement in re.split(r"(?<!\\)\n", text):
        in_table = statement.startswith("set table") or (in_table and not statement.startswith("unset table"))
        if re.match(" *plot ", statement) and not in_table:
            statement = (f"set format '%.10g'; set table '{values}' append\n{statement}\nunset table\n"
                         "show object; show arrow; show logscale; "
                         "print sprintf('%.5g to %.5g, %.5g to %.5g', GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)")
        statements.append(statement)
    return "\n".join(statements)


def points(text):
    """A line for each curve that has points."""
    for number, block in enumerate(text.split("# Curve ")[1:]):
        rows = [[int(x, 16) if x[:2] == "0x" else float(x) for x in line.split()[:-1]]  # hexadecimal: a colour
                for line in block.split("\n") if re.search(r" [io]$", line)]
        if rows:
            columns = list(zip(*rows))
            with_x = [[a * b for a, b in zip(columns[0], column)] for column in columns[1:]]
            yield f"curve {number}: {len(rows)} points, sums" + "".join(f" {math.fsum(x):.5g}" for x in columns + with_x)


def look(svg):
    """The words of a picture, those from below upwards marked, and the colours, marks and dashes of its curves."""
    for place, text in re.findall(r"""<g transform="([^"]*)"[^>]*>\s*<text[^>]*>(.*?)</text>""", svg, re.S):
        words = html.unescape(re.sub("<[^>]*>", "", text)).strip()
        if re.search("[^\\W\\d]|∞", words):  # no numbers of axes
            yield ("upwards: " if "rotate(-90" in place else "") + words
    for curve in re.findall('<g id="gnuplot_plot_(.*?)</g>\n\t</g>', svg, re.S):
        title = html.unescape(re.search("<title>(.*?)</title>", curve)[1])
        legend = re.match("\\d+g", curve) and not title.startswith("gnuplot_plot")
        colours = sorted({"#%02x%02x%02x" % tuple(map(int, rgb)) for rgb in
                          re.findall(r"(?:stroke|fill|color) ?= ?'rgb\( *(\d+), *(\d+), *(\d+)\)'", curve)})
        marks = sorted(set(re.findall("href='#gp(Pt\\d+)'", curve)))
        if colours and len(colours) < 9:  # more: an image's
            dashed = ["dashed"] * ("stroke-dasharray" in curve)
            yield " ".join(["legend: " + title if legend else "curve:", *colours, *marks, *dashed])


def axes(said):
    """Of each plot the ranges and kinds of its axes, and where rectangles and arrows are."""
    for shape, which, ranges in re.findall(r"(?:rect|^\s*)(?: from|from) (.*)|logscaling on (.*)\s+(.* to .*)", said, re.M):
        yield f"axes: {ranges}, logarithmic: {which.strip()}" if ranges else f"shape: from {shape}"


def drawn(folder, script, tables):
    """What a figure draws, in lines."""
    for title, rows in tables.items():
        (folder / f"{title}.csv").write_text("\n".join(rows) + "\n")
    csv, values, other = folder / f"{next(iter(tables))}.csv", folder / "values", folder / "values.gp"
    values.unlink(missing_ok=True)
    other.write_text(printing(script.read_text(), values))
    lines = list(look(plot(csv, script, folder / "a.svg")[0]))
    return lines + list(axes(plot(csv, other, folder / "values.svg")[1])) + list(points(values.read_text()))


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
    made_up = {"attention_maps": maps, "networks_counts": counts, "networks_accuracy": accuracy, "networks_epochs": epochs,
               "attention_half": lambda: {"half": half((49, 196, 784), (1,))}}
    version = subprocess.run(["gnuplot", "--version"], stdout=subprocess.PIPE, text=True).stdout
    for script in sorted(SOURCE.glob("experiments/*/*.gp")):
        name = f"{script.parent.name}_{script.stem}"
        if name in ("common_plots", "networks_maps"):  # networks/maps: test_train.py
            continue
        got = drawn(folder, script, made_up.get(name, lambda: kept(name))())
        file = f"{name}.txt"
        if "ATTNUM_TEST_WRITE" in os.environ:
            pathlib.Path(os.environ["ATTNUM_TEST_WRITE"], file).write_text("\n".join(got) + "\n")
        want = (SOURCE / "tests/cli/figures" / file).read_text().splitlines()
        if not version.startswith("gnuplot 5.4"):  # that of the files; others may draw in another order and other ways
            got, want = [sorted(line for line in lines if not re.match("(curve|legend|axes|shape):", line))
                         for lines in (got, want)]
        check(f"{name} draws what figures/{file} keeps", got == want)
        for line in sorted(set(got) ^ set(want)):
            print("  ", "not kept:" if line in got else "not drawn:", line)
sys.exit(failed > 0)
