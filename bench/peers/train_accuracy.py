#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""train_accuracy.py: do attnum train and PyTorch end with the same accuracy? Both train the same networks on the first
pictures of Fashion-MNIST by the same recipe (experiments/train/README.md), seed by seed from the same initial weights;
the order of the pictures, their crops and flips are drawn by each itself. Test accuracies on the 10,000 others: means and
standard deviations over the seeds, the mean of the differences seed by seed with its 95 % interval, and the
probability of one as large by chance (Student's paired test, two-sided). Exit code 1 if an operator's probability is
below 0.01 over the number of operators, else 0.

    python3 bench/peers/train_accuracy.py --operator softmax,sima --images 10000 --epochs 5 --out accuracy.csv

It takes as long as the trainings. The pictures are installed by scripts/setup --training."""
import argparse
import csv
import gzip
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch_networks

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH, RATE, LEAST, DECAY, SHIFT = 32, 2e-3, 0.01, 0.05, 1
COLUMNS = {"operator": "attnum's name, with its variant", "seed": "of the initial weights",
           "attnum": "test accuracy of attnum train", "pytorch": "test accuracy of PyTorch",
           "images": "number of pictures to train on", "epochs": "passes over them", "torch": "version of PyTorch"}


def read_idx(path):
    data = gzip.open(path).read()
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(
        [int.from_bytes(data[4 * i:4 * i + 4], "big") for i in range(1, data[3] + 1)])


def read_set(folder, name, images=None):
    """Pixels, normalised as experiments/train/fashion.c does, with a black border; labels."""
    pixels = read_idx(folder / f"{name}-images-idx3-ubyte.gz")[:images].astype(np.float32) / 255
    pixels = np.pad(pixels, ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT)))
    labels = read_idx(folder / f"{name}-labels-idx1-ubyte.gz")[:images]
    return torch.tensor((pixels - 0.2860) / 0.3530), torch.tensor(labels.astype(np.int64))


def crops(pixels, generator):
    """Each moved by up to SHIFT pixels in both directions, and flipped or not."""
    moves = torch.randint(2 * SHIFT + 1, (len(pixels), 2), generator=generator).tolist()
    flips = torch.randint(2, (len(pixels),), generator=generator).tolist()
    cut = [image[down:down + 28, right:right + 28] for image, (down, right) in zip(pixels, moves)]
    return torch.stack([image.flip(-1) if flipped else image for image, flipped in zip(cut, flips)])


def rate_of(step, per_epoch, epochs):
    """Of step 1, 2, ...: as experiments/train/trainer.c has it."""
    steps = epochs * per_epoch
    warm = per_epoch if epochs > 1 else steps / 10
    if step <= warm:
        return RATE * step / warm
    return RATE * (LEAST + (1 - LEAST) * (1 + math.cos(math.pi * (step - warm) / (steps - warm))) / 2)


def accuracy(network, test):
    pixels, labels = test
    inner = pixels[:, SHIFT:-SHIFT, SHIFT:-SHIFT]
    with torch.no_grad():
        right = sum((network.forward(inner[i:i + 100].flatten(1)).argmax(1) == labels[i:i + 100]).sum().item()
                    for i in range(0, len(labels), 100))
    return right / len(labels)


def train_torch(name, weights, train, test, epochs, seed):
    parameters = torch_networks.read_parameters(weights)
    trained = {key: p for key, p in parameters.items() if p.requires_grad}
    network = torch_networks.Network(name.split("/")[0], parameters, fast=True)
    optimizer = torch.optim.AdamW([{"params": [p for key, p in trained.items() if torch_networks.decays(key, p) == decays],
                                    "weight_decay": DECAY * decays} for decays in (True, False)])
    generator = torch.Generator().manual_seed(seed)
    (pixels, labels), per_epoch = train, len(train[1]) // BATCH
    for epoch in range(epochs):
        order = torch.randperm(len(labels), generator=generator)
        for step in range(per_epoch):
            chosen = order[step * BATCH:(step + 1) * BATCH]
            for group in optimizer.param_groups:
                group["lr"] = rate_of(epoch * per_epoch + step + 1, per_epoch, epochs)
            optimizer.zero_grad()
            torch_networks.loss_of(network.forward(crops(pixels[chosen], generator).flatten(1)), labels[chosen]).backward()
            torch.nn.utils.clip_grad_norm_(list(trained.values()), 1)
            optimizer.step()
    return accuracy(network, test)


def train_ours(options, name, seed, folder):
    """The accuracy, and the file of the initial weights."""
    subprocess.run([options.program, "train", "--dataset", options.dataset, "--operator", name, "--epochs",
                    str(options.epochs), "--images", str(options.images), "--threads", "1", "--keep-epochs", "--seed",
                    str(seed), "--out", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(folder / "train.csv") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    start, = (folder / "trained").glob("*-epoch0.npz")
    return float(rows[-1]["test_accuracy"]), start


def chance(t, freedom):
    """Of a t distribution, both tails beyond t, by Simpson's rule."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    count, t = 2000, abs(t)
    heights = [scale * (1 + (t * i / count) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(count + 1)]
    within = (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])) * t / count / 3
    return max(0.0, 1 - 2 * within)


def interval(freedom, share=0.05):
    """The t beyond which a t distribution has this share in both tails, by bisection."""
    low, high = 0.0, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle, freedom) > share else (low, middle)
    return low


def judge(name, rows):
    """Prints a line; the chance of such a difference."""
    ours, theirs = ([100 * row[side] for row in rows] for side in ("attnum", "pytorch"))
    differences = [a - b for a, b in zip(ours, theirs)]
    mean, error = statistics.mean(differences), statistics.stdev(differences) / math.sqrt(len(rows))
    p = chance(mean / error, len(rows) - 1) if error > 0 else float(mean == 0)
    print(f"| `{name}` | {statistics.mean(ours):.2f} ± {statistics.stdev(ours):.2f} % | {statistics.mean(theirs):.2f} ± "
          f"{statistics.stdev(theirs):.2f} % | {mean:+.2f} ± {interval(len(rows) - 1) * error:.2f} | {p:.2g} |", flush=True)
    return p


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="columns of the CSV\n" + "".join(
                                         f"  {name:10}{text}\n" for name, text in COLUMNS.items()))
    parser.add_argument("--operator", type=lambda text: text.split(","), default=["softmax", "sima"],
                        help=f"LIST of {', '.join(torch_networks.NAMES)} (default softmax,sima)")
    parser.add_argument("--images", type=int, default=10000, help="to train on (default 10000)")
    parser.add_argument("--epochs", type=int, default=5, help="(default 5)")
    parser.add_argument("--seeds", type=int, default=5, help="1, 2, ..., at least 2 (default 5)")
    parser.add_argument("--dataset", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/experiments/attnum")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("train_accuracy.csv"))
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds: at least 2")
    for name in options.operator:
        if name not in torch_networks.NAMES:
            parser.error(f"--operator: no '{name}', expected {', '.join(torch_networks.NAMES)}")
    torch.set_num_threads(1)
    train, test = read_set(options.dataset, "train", options.images), read_set(options.dataset, "t10k")
    print("| operator | attnum | PyTorch | difference, points | chance |\n|---|---|---|---|---|")
    temporary, chances = options.out.with_name(options.out.name + ".new"), []
    with open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name in options.operator:
            rows = []
            for seed in range(1, options.seeds + 1):
                with tempfile.TemporaryDirectory() as folder:
                    ours, start = train_ours(options, name, seed, pathlib.Path(folder))
                    theirs = train_torch(name, start, train, test, options.epochs, seed)
                rows.append({"operator": name, "seed": seed, "attnum": ours, "pytorch": theirs, "images": options.images,
                             "epochs": options.epochs, "torch": torch.__version__})
                writer.writerow(rows[-1])
                file.flush()
            chances.append(judge(name, rows))
    temporary.rename(options.out)
    return int(min(chances) < 0.01 / len(chances))


if __name__ == "__main__":
    sys.exit(main())
