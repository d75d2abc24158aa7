#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""train_peers.py: attnum train against PyTorch, by turns: images per second of whole training steps (forward, backward,
AdamW with clipping), batches of 32, the same networks on made-up pictures. PyTorch is eager, with its fused softmax, and
squared distances as products. A table of medians over the rounds; on a machine on which others are at work, look at the
ratio of the processors' seconds, with --threads 1."""
import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch_networks

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
from pictures import write_pictures  # noqa: E402

BATCH = 32


def listed(text):
    return text.split(",")


def processor_seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


class Peer:
    """PyTorch's training, from the weights that attnum has left."""

    def __init__(self, name, weights):
        self.parameters = torch_networks.read_parameters(weights)
        trained = [p for p in self.parameters.values() if p.requires_grad]
        self.network = torch_networks.Network(name.split("/")[0], self.parameters, fast=True)
        self.trained = trained
        self.optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.05)

    def train(self, steps):
        """Seconds, and the processors' seconds."""
        pixels, labels = torch.randn(steps, BATCH, 784), torch.randint(10, (steps, BATCH))
        start, used = time.perf_counter(), processor_seconds(resource.RUSAGE_SELF)
        for i in range(steps):
            self.optimizer.zero_grad()
            torch_networks.loss_of(self.network.forward(pixels[i]), labels[i]).backward()
            torch.nn.utils.clip_grad_norm_(self.trained, 1)
            self.optimizer.step()
        return time.perf_counter() - start, processor_seconds(resource.RUSAGE_SELF) - used


def train_ours(program, name, steps, threads, folder):
    """The same for attnum; the processors' seconds are of the whole process, start and test set included."""
    used = processor_seconds(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "train", "--dataset", folder, "--operator", name, "--epochs", "1", "--images",
                    str(steps * BATCH), "--threads", str(threads), "--out", folder / "out"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    used = processor_seconds(resource.RUSAGE_CHILDREN) - used
    with open(folder / "out/train.csv") as file:
        columns, values = (line.strip().split(",") for line in file)
    return steps * BATCH / float(values[columns.index("images_per_second")]), used


def compare(name, options, folder):
    ours = train_ours(options.program, name, 1, options.threads, folder)
    weights, = (folder / "out/trained").glob(name.replace("/", "-") + "*.npz")
    peer = Peer(name, weights)
    peer.train(1)  # warms up
    rounds = []
    for _ in range(options.rounds):
        ours = train_ours(options.program, name, options.steps, options.threads, folder)
        rounds.append((*ours, *peer.train(options.steps)))
    images = options.steps * BATCH
    seconds, used, peer_seconds, peer_used = (statistics.median(column) for column in zip(*rounds))
    ratio, used_ratio = (statistics.median(row[k + 2] / row[k] for row in rounds) for k in (0, 1))
    print(f"| `{name}` | {images / seconds:.0f} | {images / peer_seconds:.0f} | {ratio:.2f} | "
          f"{1e3 * used / images:.2f} | {1e3 * peer_used / images:.2f} | {used_ratio:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operator", type=listed, default=torch_networks.NAMES, help="LIST (default: all)")
    parser.add_argument("--threads", type=int, default=2, help="of both (default 2)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default 3)")
    parser.add_argument("--steps", type=int, default=32, help="of 32 images in a turn (default 32)")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/experiments/attnum")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    print("| operator | attnum, images/s | PyTorch, images/s | ratio | attnum, processor ms/image | PyTorch | ratio |\n"
          "|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_pictures(folder, "train", options.steps * BATCH)
        write_pictures(folder, "t10k", 4)
        for operator in options.operator:
            compare(operator, options, folder)


main()
