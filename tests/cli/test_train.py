#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_train.py PROGRAM: attnum train on made-up pictures: its files, --resume after kill -9 and SIGTERM to the same bits,
threads, and what it refuses."""
import csv
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

from pictures import write_pictures

program = pathlib.Path(sys.argv[1]).resolve()
checks = failures = 0


def check(holds, what):
    global checks, failures
    checks += 1
    if not holds:
        failures += 1
        print("FAIL ", what, flush=True)


WORDS = ["train", "--dataset", "data", "--operator", "xnorm,sima", "--epochs", "3", "--patch", "4"]


def start(*words):
    return subprocess.Popen([program, *WORDS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*words, code=0, says=""):
    child = start(*words)
    stdout, stderr = child.communicate()
    what = " ".join(words)
    check(child.returncode == code, f"{what}: exit code {child.returncode}, expected {code}: {stderr}")
    check(says in stderr, f"{what}: said {stderr!r}, expected {says!r}")
    return stdout


def weights(folder):
    """By name; their metadata hold neither threads nor date."""
    return {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder, "trained").iterdir())}


def rows(folder):
    with open(f"{folder}/train.csv", newline="") as file:
        return [{k: v for k, v in row.items() if k != "images_per_second"} for row in csv.DictReader(file)]


def whole_runs():
    run("--threads", "1", "--out", "one")
    found = weights("one")
    check(list(found) == ["sima-paper-seed1.npz", "xnorm-paper-seed1.npz"], f"files: {list(found)}")
    check(len(rows("one")) == 6, "a row per epoch")
    check(float(rows("one")[2]["train_loss"]) < float(rows("one")[0]["train_loss"]), "the loss falls")
    run("--threads", "2", "--out", "two")
    check(weights("two") == found and rows("two") == rows("one"), "threads change nothing")
    run("--seed", "2", "--out", "seed")
    check(not any(content in found.values() for content in weights("seed").values()), "another seed, other weights")


def columns():
    """What they hold, each another value, and what the weights say of themselves."""
    with open("one/train.csv", newline="") as file:
        last = list(csv.DictReader(file))[5]
    texts = ("operator", "variant", "change")
    number = {name: float(last[name]) for name in last if name not in texts}
    check([last[name] for name in (*texts, "seed")] == ["sima", "paper", "none", "1"], f"row: {last}")
    check(len(set(last.values())) == len(last), f"no two columns are equal: {last}")
    check(number["epoch"] == 3 and number["steps"] == 24, "eight batches of 32 in 256 pictures, thrice")
    check(abs(number["rate"] - 2e-5) < 1e-12, f"the rate ends at a hundredth: {last['rate']}")
    check(number["train_loss"] > number["test_loss"] > 1, f"smoothing and crops cost: {last}")
    for name, images in (("train_accuracy", 256), ("test_accuracy", 16)):
        check(0 < number[name] <= 1 and (number[name] * images).is_integer(), f"{name} is a share of {images}: {last}")
    check(number["images_per_second"] > 1, "a speed")
    with zipfile.ZipFile("one/trained/sima-paper-seed1.npz") as file:
        said = json.loads(file.read("metadata.json"))
        shape = file.read("patch.weight.npy")[:128]
    check(b"(64, 16, )" in shape, f"patches of 4 x 4: {shape}")
    check((said["steps"], said["epochs"], said["images"], said["patch"]) == (24, 3, 256, 4), f"metadata: {said}")
    check(said["test_accuracy"] == number["test_accuracy"] and said["test_loss"] == number["test_loss"],
          f"metadata and row: {said}")


def options():
    """Each changes the weights and the rows as it says."""
    first = rows("one")
    for words, images, epochs in ((("--images", "128"), 128, 3), (("--quick", "--images", "256"), 256, 3)):
        run(*words, "--out", "option")
        found = rows("option")
        check(len(found) == 2 * epochs and int(found[-1]["steps"]) == epochs * images // 32, f"{words}: {found[-1]}")
        check((weights("option") == weights("one")) == (images == 256), f"{words}: the weights")
    words = [program, "train", "--dataset", "data", "--operator", "sima", "--patch", "4"]
    for more, epochs in (((), 5), (("--full",), 10), (("--quick", "--images", "256"), 2)):
        subprocess.run([*words, *more, "--out", "usual"], check=True, capture_output=True)
        check(len(rows("usual")) == epochs, f"{more}: {epochs} epochs")
        check(rows("usual")[0]["rate"] == first[3]["rate"], f"{more}: the rate after the first")


def kept_epochs():
    """--keep-epochs adds the weights of every epoch, the initial ones and the last ones included, and changes no other."""
    run("--threads", "2", "--keep-epochs", "--out", "kept")
    kept, one = weights("kept"), weights("one")
    check(rows("kept") == rows("one"), "kept epochs change no row")
    for name in one:
        epochs = {name.replace(".npz", f"-epoch{epoch}.npz"): epoch for epoch in range(4)}
        check(set(epochs) == {other for other in kept if other.startswith(name[:-4] + "-")}, f"epochs 0 to 3: {list(kept)}")
        check(kept[name] == one[name] == kept[name.replace(".npz", "-epoch3.npz")], f"{name}: the last epoch is the result")
        curve = [row for row in rows("kept") if name.startswith(f"{row['operator']}-{row['variant']}-seed")]
        for file, epoch in epochs.items():
            with zipfile.ZipFile(f"kept/trained/{file}") as archive:
                said = json.loads(archive.read("metadata.json"))
            row = curve[epoch - 1] if epoch else said
            check(said["steps"] == 8 * epoch, f"{file}: {said['steps']} steps")
            for what in ("test_accuracy", "test_loss"):
                check(said[what] == float(row[what]), f"{file}: {what} {said[what]}, the curve's {row[what]}")
        scores = [tuple(row[what] for what in ("test_accuracy", "test_loss")) for row in curve]
        check(len(set(scores)) == 3, f"no two epochs are equal: {scores}")


def member(path, name):
    with zipfile.ZipFile(path) as file:
        return file.read(name)


def numbers(path, name):
    """An array of f32, without its header."""
    content = member(path, name)
    return struct.unpack(f"<{(len(content) - 128) // 4}f", content[128:])


def halves():
    """--f16: the same training, its weights rounded to the nearest f16, and read again."""
    run("--threads", "2", "--f16", "--out", "halves")
    check(rows("halves") == rows("one"), "f16 changes no row")
    for name in weights("one"):
        with zipfile.ZipFile(f"one/trained/{name}") as wide, zipfile.ZipFile(f"halves/trained/{name}") as narrow:
            check(wide.namelist() == narrow.namelist(), f"{name}: the arrays")
            check(wide.read("metadata.json") == narrow.read("metadata.json"), f"{name}: what it says")
            for array in set(wide.namelist()) - {"metadata.json"}:
                values, content = numbers(f"one/trained/{name}", array), narrow.read(array)
                check(b"'<f2'" in content[:128] and content[128:] == struct.pack(f"<{len(values)}e", *values), f"{name}: {array}")
    words = ["run", "spectral/softmax", "--n", "49", "--samples", "1", "--input", "trained:halves/trained/sima-paper-seed1.npz"]
    child = subprocess.run([program, *words, "--out", "tokens"], capture_output=True, text=True)
    check(child.returncode == 0, f"{words}: {child.stderr}")


BRIEF = ["train", "--dataset", "data", "--epochs", "1", "--images", "64"]
SHORT = [*BRIEF, "--patch", "4", "--operator", "sima"]


def shapes():
    """--side and --heads: what the metadata say, and tokens of such networks."""
    for words, expected in ((("--side", "56"), {"side": 56, "heads": 2, "width": 64, "hidden": 128}),
                            (("--heads", "1"), {"side": 28, "heads": 1, "width": 32, "hidden": 64})):
        out = words[0].strip("-")
        subprocess.run([program, *SHORT, *words, "--out", out], check=True, capture_output=True)
        path = f"{out}/trained/sima-paper-seed1.npz"
        said = json.loads(member(path, "metadata.json"))
        check({name: said[name] for name in expected} == expected, f"{words}: {said}")
        tokens = (said["side"] // 4) ** 2
        check(len(numbers(path, "position.npy")) == tokens * said["width"], f"{words}: the positions")
        words = ["run", "spectral/softmax", "--n", str(tokens), "--samples", "1", "--input", f"trained:{path}"]
        child = subprocess.run([program, *words, "--out", "tokens"], capture_output=True, text=True)
        check(child.returncode == 0, f"{words}: {child.stderr}")


def changes():
    """--change: the rows, files and metadata of changed networks, and their accuracies when they are read again."""
    operators = {"soft-code": ("none", "pool", "random", "exact", "m-4", "one-head"), "sima-paper": ("none", "relu", "one-head")}
    given = "none,pool,random,exact,m-4,relu,one-head"
    subprocess.run([program, *BRIEF, "--operator", "soft/code,sima", "--change", given, "--seed", "1,2,3", "--out", "changed"],
                   check=True, capture_output=True)
    found = rows("changed")
    want = {(name, change, seed) for name in operators for change in operators[name] for seed in (1, 2, 3)}
    check({(f"{row['operator']}-{row['variant']}", row["change"], int(row["seed"])) for row in found} == want, "the rows")
    files, accuracies = {}, {}
    for name, change, seed in sorted(want):
        path = f"changed/trained/{name}{'' if change == 'none' else '-' + change}-seed{seed}.npz"
        files[name, change, seed] = path
        said = json.loads(member(path, "metadata.json"))
        accuracies[name, change, seed] = said["test_accuracy"]
        check(said.get("change", "none") == change, f"{path}: {said}")
        check(said["heads"] == (1 if change == "one-head" else 2) and said["landmarks"] == (4 if change == "m-4" else 49),
              f"{path}: {said}")
        arrays = zipfile.ZipFile(path).namelist()
        check(("blocks.0.attention.conv.npy" in arrays) == (name == "soft-code" and change not in ("pool", "random")),
              f"{path}: the convolution")
    heads = {key: (member(path, "head.weight.npy"), member(path, "blocks.0.output.weight.npy")) for key, path in files.items()}
    check(len(heads) == len(want) == len(set(heads.values())), "all weights differ")
    readable = [path for (_, change, seed), path in files.items() if change != "one-head" and seed == 1]  # heads are 32 wide
    subprocess.run([program, "run", "networks/accuracy", "--dataset", "data", "--network", ",".join(readable), "--out",
                    "again"], check=True, capture_output=True)
    with open("again/networks/accuracy.csv", newline="") as file:
        again = [float(row["accuracy"]) for row in csv.DictReader(file) if row["change"] == "none"]
    expected = [accuracies[key] for key, path in files.items() if path in readable]
    check(again == expected, f"read again: {again}, trained: {expected}")
    for change, code in (("pool", 0), ("random", 0), ("exact", 2)):  # which has no steps
        words = ["run", "networks/epochs", "--network", files["soft-code", change, 1], "--samples", "1", "--out", "again"]
        child = subprocess.run([program, *words], capture_output=True, text=True)
        check(child.returncode == code and ("no Newton-Raphson" in child.stderr) == (code == 2), f"{change}: {child.stderr}")
    seeds_table("changed/train_seeds.csv", accuracies)
    changed_afterwards(files["sima-paper", "relu", 2], [files["sima-paper", "none", seed] for seed in (2, 1, 3)])
    subprocess.run([program, *BRIEF, "--operator", "xnorm", "--change", "layer-norm", "--out", "normed"], check=True,
                   capture_output=True)
    child = subprocess.run([program, "run", "networks/accuracy", "--network", "normed/trained/xnorm-paper-layer-norm-seed1.npz",
                            "--out", "again"], capture_output=True, text=True)
    check(child.returncode == 3 and "an operator of the library" in child.stderr, f"a network with LN: {child.stderr}")
    for operator, change, seed, says in (("soft", "pol", 1, "pool"), ("soft", "noise-1", 1, "expected one of none"),
                                         ("sima", "pool", 1, "only for soft, softpp"),
                                         ("soft", "random", 2 ** 53 + 1, "expected at most")):
        more = ["--operator", operator, "--change", change, "--seed", str(seed)]
        child = subprocess.run([program, *BRIEF, *more, "--out", "x"], capture_output=True, text=True)
        check(child.returncode == 2 and says in child.stderr and child.stderr.count("\n") == 1, f"{more}: {child.stderr}")


def changed_afterwards(trained_with, networks):
    """accuracy_seeds.csv: of the seeds 2, 1 and 3; not of a network that was trained with a change or for longer, nor of
    seed 2 again."""
    longer = ["train", "--dataset", "data", "--epochs", "2", "--images", "64", "--operator", "sima", "--seed", "4"]
    subprocess.run([program, *longer, "--out", "longer"], check=True, capture_output=True)
    given = ",".join([trained_with, *networks, shutil.copy(networks[0], "again.npz"), "longer/trained/sima-paper-seed4.npz"])
    subprocess.run([program, "run", "networks/accuracy", "--dataset", "data", "--network", given, "--out", "seeds"], check=True,
                   capture_output=True)
    with open("seeds/networks/accuracy.csv", newline="") as file:
        table = list(csv.DictReader(file))
    draws, seeds = {}, {pathlib.Path(network).name: seed for network, seed in zip(networks, (2, 1, 3))}
    for row in (row for row in table if row["network"] in seeds):
        key = "sima-paper", row["change"], seeds[row["network"]]
        draws.setdefault(key, []).append([float(row[name]) for name in ("accuracy", "became_right", "became_wrong")])
    check({len(of) for of in draws.values()} == {1, 3}, "3 draws of noise")
    means = {key: [statistics.mean(column) for column in zip(*of)] for key, of in draws.items()}
    seeds_table("seeds/networks/accuracy_seeds.csv", {key: of[0] for key, of in means.items()},
                {key: of[1:] for key, of in means.items()})


def sign_test(right, wrong):
    """p of the exact two-sided sign test."""
    return 2 * sum(math.comb(right + wrong, k) for k in range(min(right, wrong) + 1)) / 2 ** (right + wrong)


def seeds_table(path, accuracies, became=None):
    """A table over seeds is what the accuracies of three seeds make, and of paired pictures what became right and wrong."""
    quantile = 0.95 * (2 / (1 - 0.95 ** 2)) ** 0.5  # of Student's t with 2 degrees of freedom, at 0.975
    with open(path, newline="") as file:
        table = list(csv.DictReader(file))
    check(len(table) == len(accuracies) // 3, f"{len(table)} networks")
    for row in table:
        name, change = f"{row['operator']}-{row['variant']}", row["change"]
        own = [accuracies[name, change, seed] for seed in (1, 2, 3)]
        apart = [accuracies[name, change, seed] - accuracies[name, "none", seed] for seed in (1, 2, 3)]
        want = {"epochs": 1, "steps": 2, "seeds": 3, "finished": 3, "accuracy": statistics.mean(own), "deviation": statistics.stdev(own)}
        if change != "none":
            constant = max(apart) - min(apart) < 1e-12
            interval = 0 if constant else quantile * statistics.stdev(apart) / 3 ** 0.5
            want |= {"difference": statistics.mean(apart), "interval": interval}
            verdict = "lower" if want["difference"] < -interval else "higher" if want["difference"] > interval else "no difference"
            if became:
                pictures = [round(sum(of)) for of in zip(*(became[name, change, seed] for seed in (1, 2, 3)))]
                verdict = verdict if sign_test(*pictures) <= 0.05 else "no difference"
            elif constant and any(apart):
                verdict = ""
            check(row["against"] == "none", f"{row}")
            check(row["verdict"] == verdict, f"{row}: {verdict}")
        else:
            check(not any(row[key] for key in ("against", "difference", "interval", "verdict")), f"{row}")
        for key, value in want.items():
            check(abs(float(row[key]) - value) < 1e-12, f"{name} {change}: {key} {row[key]}, {value}")


def starts():
    """--start: the file's weights, with positions between those of its grid, and the file's SHA-256."""
    file = "one/trained/sima-paper-seed1.npz"
    words = [program, *SHORT, "--keep-epochs", "--start", file]
    for side in (28, 56):
        subprocess.run([*words, "--side", str(side), "--seed", "5", "--out", f"from{side}"], check=True, capture_output=True)
        first, last = (f"from{side}/trained/sima-paper-seed5{end}.npz" for end in ("-epoch0", ""))
        for name in zipfile.ZipFile(file).namelist():
            if name != "metadata.json" and (name, side) != ("position.npy", 56):
                check(member(first, name) == member(file, name), f"--side {side}: {name}")
        said = json.loads(member(first, "metadata.json"))
        check(said["start_sha256"] == hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest(), f"{said}")
        check(said["steps"] == 0 and member(first, "patch.weight.npy") != member(last, "patch.weight.npy"), "it is trained")
    old, new = numbers(file, "position.npy"), numbers("from56/trained/sima-paper-seed5-epoch0.npz", "position.npy")
    for row in range(14):
        for column in range(14):
            y, x = (min(max((i + 0.5) / 2 - 0.5, 0), 6) for i in (row, column))
            want = sum(max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j)) * old[(7 * i + j) * 64 + 3]
                       for i in range(7) for j in range(7))
            check(abs(new[(14 * row + column) * 64 + 3] - want) < 1e-6, f"the position of token {row}, {column}")
    for more, code, says in ((("--heads", "3"), 3, "another shape"), (("--operator", "soft"), 3, "another shape"),
                             (("--operator", "softmax"), 3, "blocks.0.scale1 is no parameter of a network of softmax/attention"),
                             (("--side", "30"), 2, "--side 30: expected a multiple of 28")):
        child = subprocess.run([*words, *more, "--out", "x"], capture_output=True, text=True)
        check(child.returncode == code and says in child.stderr, f"{more}: {child.returncode} {child.stderr}")
    words = [*BRIEF, "--operator", "soft/code", "--change", "pool", "--seed", "1,2", "--out", "pooled"]
    child = subprocess.run([program, *words, "--start", "changed/trained/soft-code-seed1.npz"], capture_output=True, text=True)
    check(child.returncode == 0 and child.stderr.count("arrays are left out, which pool does without") == 1,
          f"averages after a convolution: {child.returncode} {child.stderr}")


def tiles(out):
    """The tiles of networks/maps: the weights' image, and where in the picture the query is."""
    text = pathlib.Path(f"{out}/networks/maps.svg").read_text()
    found, image, frame = set(), None, None
    for data, colour, *corners in re.findall(
            r"base64,([^']+)'|<path stroke='rgb\((136|  0), .*?\)'  d='M(\S+),(\S+) L\S+ L(\S+),(\S+) ", text):
        if data:
            image = data
        elif colour == "136":
            frame = [float(corner) for corner in corners]
        elif frame:
            left, top, right, _ = frame
            found.add((image, *(round((float(at) - (left, top)[i % 2]) / (right - left), 2) for i, at in enumerate(corners))))
    return found


def maps():
    """networks/maps of networks with grids of 7 x 7 and 14 x 14 patches draws each as it draws it alone."""
    if not shutil.which("gnuplot"):
        print("left out: no gnuplot")
        return
    networks = ["one/trained/sima-paper-seed1.npz", "softmax"]
    for out, given in (("coarse", networks[:1]), ("fine", networks[1:]), ("both", networks)):
        subprocess.run([program, "run", "networks/maps", "--network", ",".join(given), "--out", out], check=True,
                       capture_output=True)
    check(len(tiles("coarse")) == len(tiles("fine")) == 9, f"8 maps and the picture: {len(tiles('coarse'))}")
    check(tiles("both") == tiles("coarse") | tiles("fine"), "tiles of networks with different grids")


def odd_checkpoints():
    """What is no file of ours in a checkpoint's place ends with one line, or is replaced; it is not followed."""
    path = pathlib.Path("odd/trained/xnorm-paper-seed1.npz.checkpoint")
    words = ("--operator", "xnorm", "--out", "odd", "--resume")
    base = [program, "train", "--dataset", "data", "--epochs", "3", "--patch", "4", "--threads", "1"]
    for make, says in ((lambda: os.mkfifo(path), "not a regular file"), (path.mkdir, "not a regular file"),
                       (lambda: path.write_bytes(b""), "the end of a zip archive is missing"),
                       (lambda: path.symlink_to(path.name), None), (lambda: path.symlink_to("nowhere"), None)):
        shutil.rmtree("odd", ignore_errors=True)
        path.parent.mkdir(parents=True)
        make()
        child = subprocess.run([*base, *words], capture_output=True, text=True, timeout=60)
        errors = [line for line in child.stderr.splitlines() if not line.startswith("attnum: note: ")]
        if says:
            check(child.returncode == 3 and len(errors) == 1 and says in errors[0], f"{says}: {child.stderr}")
        else:
            check(child.returncode == 0, f"a link to nothing: {child.returncode} {child.stderr}")
            check(os.listdir(path.parent) == ["xnorm-paper-seed1.npz"], f"the link is gone: {os.listdir(path.parent)}")
            check(list(weights("odd").items())[0] in weights("one").items(), "the same weights")


def stopped_runs():
    for number, how in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)):
        out = f"stopped{number}"
        child = start("--threads", "2", "--keep-epochs", "--out", out)
        for _ in range(2000):
            if list(pathlib.Path(out).glob("trained/*.checkpoint")) or child.poll() is not None:
                break
            time.sleep(0.002)
        time.sleep(0.05 * number)
        child.send_signal(how)
        stdout, stderr = child.communicate()
        check("epoch 1 of 3" in stdout, f"{how}: an epoch is reported as it ends: {stdout}")
        check(child.returncode in ((3, 0) if how == signal.SIGTERM else (-how, 0)), f"{how}: {child.returncode} {stderr}")
        run("--threads", "1", "--keep-epochs", "--out", out, "--resume")
        check(weights(out) == weights("kept"), f"{how}: the same weights, of every epoch")
        check(rows(out) == rows("one"), f"{how}: the same rows")


def kept_later():
    """--resume makes no weights of what has been trained already: it is refused where they are missing."""
    def again(*words):
        child = subprocess.run([program, *SHORT, "--out", "later", *words], capture_output=True, text=True)
        return child.returncode, child.stderr

    check(again()[0] == 0, "some epochs")
    code, said = again("--resume")
    check(code == 0 and "already complete" in said, f"complete: {code} {said}")
    code, said = again("--resume", "--keep-epochs")
    check(code == 2 and "sima-paper-seed1-epoch0.npz is missing" in said, f"epochs that were not kept: {code} {said}")
    check(again("--keep-epochs")[0] == 0 and again("--keep-epochs", "--resume")[0] == 0, "without --resume they are made")
    pathlib.Path("later/trained/sima-paper-seed1.npz").unlink()
    code, said = again("--resume")
    check(code == 2 and "sima-paper-seed1.npz is missing" in said, f"missing weights: {code} {said}")
    check(again()[0] == 0 and again("--resume")[0] == 0, "without --resume they are made")
    child = start("--threads", "2", "--out", "later3")
    while not list(pathlib.Path("later3").glob("trained/*.checkpoint")) and child.poll() is None:
        time.sleep(0.002)
    child.kill()
    child.communicate()
    run("--threads", "1", "--keep-epochs", "--out", "later3", "--resume", code=2, says=".npz is missing, and its ")
    run("--threads", "1", "--out", "later3", "--resume")


def shards():
    for number in (1, 2):
        run("--shard", f"{number}/2", "--out", "shards")
    merged = subprocess.run([program, "merge", "shards", "--out", "merged"], capture_output=True, text=True)
    check(merged.returncode == 0, f"merge: {merged.stderr}")
    check(rows("merged") == rows("one"), "shards give the rows of one run")
    check(weights("shards") == weights("one"), "and its weights")
    # --heads is also an option of inspect, and of check
    for number in (1, 2):
        words = [*SHORT, "--heads", "1", "--seed", "1,2", "--shard", f"{number}/2", "--out", "narrow"]
        subprocess.run([program, *words], check=True, capture_output=True)
    merged = subprocess.run([program, "merge", "narrow", "--out", "narrow"], capture_output=True, text=True)
    check(merged.returncode == 0 and len(rows("narrow")) > 0, f"merge of --heads 1: {merged.stderr}")


def refused():
    run("--dataset", "data", code=2)  # given twice
    run("--images", "20", "--out", "x", code=2, says="a batch at least")
    check(not pathlib.Path("x/train.csv").exists(), "nothing is left of a refused run")
    run("--seed", "1", "--epochs", "0", code=2)
    child = subprocess.run([program, "train", "--dataset", "nowhere"], capture_output=True, text=True)
    check(child.returncode == 3 and "dataset-fashion-mnist" in child.stderr and child.stderr.count("\n") == 1,
          f"no pictures: {child.returncode} {child.stderr}")
    child = subprocess.run([program, "train", "--dataset", "data", "--patch", "3"], capture_output=True, text=True)
    check(child.returncode == 2 and child.stderr.count("\n") == 1, f"--patch 3: {child.returncode} {child.stderr}")


def shipped():
    """The networks of data/trained give tokens, except those with the published code's kernel, and their page says how accurate each is."""
    folder = pathlib.Path(__file__).resolve().parents[2] / "data/trained"
    listed = {}
    for line in (folder / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 3 and cells[1].endswith(".npz`"):
            listed[cells[1].strip("`")] = cells[2]
    page, points = (folder / "README.md").read_text(), lambda text: f"{100 * float(text):.2f}"
    with open(folder / "seeds.csv", newline="") as file:
        for row in csv.DictReader(file):
            accuracy = f"{points(row['accuracy'])} ± {points(row['deviation'])}"
            difference = f"{100 * float(row['difference']):+.2f} ± {points(row['interval'])}" if row["difference"] else ""
            line = f"| `{row['operator']}/{row['variant']}` | {row['change']} | {accuracy} | {difference} | {row['verdict']} |"
            check(line.replace("-", "−") in page.replace("-", "−"), f"the page lacks {line}")
    files = {path.name: path for path in folder.glob("*.npz")}
    check(files and set(files) == set(listed), f"the page lists {sorted(listed)} of {sorted(files)}")
    for name, path in files.items():
        with zipfile.ZipFile(path) as file:
            said = json.loads(file.read("metadata.json"))
        change = said.get("change", "none")
        network = f"{said['operator']}-{said['variant']}" + ("" if change == "none" else f"-{change}")
        check(name == f"{network}-seed{said['seed']}.npz", f"{name}: {said}")
        check((said["images"], said["patch"], said["epochs"]) == (60000, 2, 10), f"{name}: trained with --full: {said}")
        check(listed.get(name) == f"{100 * said['test_accuracy']:.2f} %", f"{name}: {said['test_accuracy']}")
        words = ["run", "spectral/softmax", "--n", "196", "--samples", "1", "--input", f"trained:{name[:-4]}"]
        child = subprocess.run([program, *words, "--out", "tokens"], capture_output=True, text=True)
        if change == "code-kernel":
            check(child.returncode == 2 and "--change code-kernel" in child.stderr, f"{name}: {child.returncode} {child.stderr}")
        else:
            check(child.returncode == 0 and f"trained:{name[:-4]}" in child.stdout, f"{name}: {child.stderr}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.mkdir("data")
    write_pictures("data", "train", 256)
    write_pictures("data", "t10k", 16)
    for step in (whole_runs, columns, options, kept_epochs, halves, shapes, changes, starts, maps, odd_checkpoints, stopped_runs, kept_later, shards,
                 refused, shipped):
        step()
    os.chdir("/")
print(f"{checks} checks, {failures} failed")
sys.exit(1 if failures else 0)
