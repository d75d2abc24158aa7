#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch_soft.py FOLDER [--m 49] [--steps 20] [--dtype f32,...] [--device cuda|cpu] [--seconds 0.5]
[--out FILE.csv]

Times SOFT's forward as its authors publish it, written with PyTorch's operations, and softmax
attention through PyTorch's own fused call, on the tokens that `attnum bench --emit-tokens FOLDER` wrote:
the same numbers, the same device, the same session. Optional: nothing in the build or the tests of
attnum needs it.

    L  = averages of n/m consecutive tokens (what `attnum bench` times; the paper's alternative to its
         convolution, IJCV section 3.2)
    P  = exp(-s |q - l|^2), s = 1/(2 sqrt(d)); the squared distances expanded into three products
         ("torch" kernel of the published code) or as differences ("direct")
    A+ = Newton-Raphson, X <- 2 X - X (A X), X_0 = alpha A, alpha = 0.9 * 2/|A|_1^2, A with 0.01 I, 20
         steps (published SOFT code)
    Y  = (P A+) (P^T V)

The CSV has the columns of bench.csv; those that do not apply are empty."""
import argparse
import csv
import pathlib
import re
import statistics
import sys
import time

import numpy
import torch

COLUMNS = ("work,operator,variant,inverse,passes,distance,dtype,batch,heads,n,m,d,device,device_name,capability,driver,"
           "runtime,clock_khz,memory_clock_khz,threads,version,commit,repeats,input_sets,seconds,"
           "seconds_least,seconds_largest,spread,check,check_error,check_bound,flops,exps,bytes,"
           "byte_floor_s,floor_ratio,bandwidth_share,flops_share").split(",")
DTYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
          "f64": torch.float64}
WARM_UPS, LEAST, MOST = 3, 5, 100


def averages(q, m):
    b, h, n, d = q.shape
    return q.reshape(b, h, m, n // m, d).mean(3)


def squared_distances(x, y, form):
    if form == "direct":
        return ((x.unsqueeze(-2) - y.unsqueeze(-3)) ** 2).sum(-1)
    ones_x = torch.ones(x.shape[-1], y.shape[-2], dtype=x.dtype, device=x.device)
    ones_y = torch.ones(x.shape[-2], x.shape[-1], dtype=x.dtype, device=x.device)
    return (x * x) @ ones_x + ones_y @ (y * y).transpose(-1, -2) - 2 * x @ y.transpose(-1, -2)


def newton(a, steps):
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    alpha = 0.9 * 2 / a.abs().sum(-1).amax(-1)[..., None, None] ** 2
    b = a + 0.01 * eye
    x = alpha * b
    for _ in range(steps):
        x = 2 * x - x @ b @ x
    return x


def soft(q, v, m, steps, form):
    q = q / q.shape[-1] ** 0.25
    landmarks = averages(q, m)
    p = torch.exp(-0.5 * squared_distances(q, landmarks, form))
    a = torch.exp(-0.5 * squared_distances(landmarks, landmarks, form))
    return (p @ newton(a, steps)) @ (p.transpose(-1, -2) @ v)


def softmax(q, v):
    return torch.nn.functional.scaled_dot_product_attention(q, q, v)


class Timer:
    """Seconds of a call: CUDA's events, with a write over twice the cache before each; a clock on the
    CPU."""

    def __init__(self, device):
        self.cuda = device == "cuda"
        if self.cuda:
            cache = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
            self.flush = torch.empty(2 * cache // 4 + 1024, dtype=torch.float32, device="cuda")
            self.marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def call(self, work):
        if not self.cuda:
            start = time.perf_counter()
            work()
            return time.perf_counter() - start
        self.flush.normal_()
        self.marks[0].record()
        work()
        self.marks[1].record()
        self.marks[1].synchronize()
        return self.marks[0].elapsed_time(self.marks[1]) / 1e3

    def repeats(self, work, seconds):
        for _ in range(WARM_UPS):
            self.call(work)
        times, start = [], time.perf_counter()
        while len(times) < MOST and (len(times) < LEAST or time.perf_counter() - start < seconds):
            times.append(self.call(work))
        return sorted(times)


def summary(times):
    middle = statistics.median(times)
    quartiles = statistics.quantiles(times, n=4, method="inclusive")
    return {"repeats": len(times), "input_sets": 1, "seconds": repr(middle),
            "seconds_least": repr(times[0]), "seconds_largest": repr(times[-1]),
            "spread": repr((quartiles[2] - quartiles[0]) / middle)}


def machine(device):
    row = {"device": device, "device_name": device, "version": "torch " + torch.__version__,
           "threads": torch.get_num_threads()}
    if device == "cuda":
        major, minor = torch.cuda.get_device_capability()
        row.update(device_name=torch.cuda.get_device_name(), capability=10 * major + minor)
    return row


def judged(work, reference):
    """Finite, and how far from the same formula in f64 on the first head."""
    y = work()[:1, :1].double().cpu()
    error = ((y - reference).norm() / reference.norm()).item()
    return {"check": "pass" if torch.isfinite(y).all() else "fail", "check_error": repr(error)}


def cases(q, v, options):
    """Name, variant, inverse, and a function of q and v."""
    for form in ("expanded", "direct"):
        size = q.numel() * options.m * q.element_size()
        if form == "direct" and size > 8 << 30:  # n x m x d differences
            continue
        yield "soft", "torch-" + form, "nr-soft", lambda q, v, form=form: soft(
            q, v, options.m, options.steps, form)
    yield "softmax", "torch-fused", "", softmax


def run_file(path, options, timer, writer):
    q = torch.from_numpy(numpy.load(path))
    v = torch.from_numpy(numpy.load(str(path).replace("_q.npy", "_v.npy")))
    for name in options.dtype.split(","):
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        typed_q, typed_v = (t.to(DTYPES[name]).to(options.device) for t in (q, v))
        one_q, one_v = (t[:1, :1].double().cpu() for t in (typed_q, typed_v))
        for operator, variant, inverse, work in cases(typed_q, typed_v, options):
            if operator == "soft" and q.shape[2] % options.m:
                continue
            row = {"work": "forward", "operator": operator, "variant": variant, "inverse": inverse,
                   "dtype": name, **dict(zip(("batch", "heads", "n", "d"), q.shape)),
                   "m": options.m if operator == "soft" else "", **machine(options.device)}
            try:
                row.update(judged(lambda: work(typed_q, typed_v), work(one_q, one_v)))
                row.update(summary(timer.repeats(lambda: work(typed_q, typed_v), options.seconds)))
            except RuntimeError as error:  # out of memory, or not for this type
                print(f"{operator}/{variant} {name}: {str(error).splitlines()[0]}")
                row["check"] = "left-out"
            writer.writerow(row)
            print(f"{operator}/{variant} {name} n={q.shape[2]}: {row.get('seconds', 'left out')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--m", type=int, default=49)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default=None)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("peer.csv"))
    options = parser.parse_args()
    options.dtype = options.dtype or ("f32,tf32,bf16,f16" if options.device == "cuda" else "f32")
    paths = [p for p in sorted(options.folder.glob("tokens_*_q.npy"))
             if re.fullmatch(r"tokens_b\d+_h\d+_n\d+_d\d+_q\.npy", p.name)]
    if not paths:
        print(f"{options.folder}: no tokens_*_q.npy; attnum bench --emit-tokens writes them", file=sys.stderr)
        return 3
    temporary = options.out.with_name(options.out.name + ".new")
    with torch.no_grad(), open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        timer = Timer(options.device)
        for path in paths:
            run_file(path, options, timer, writer)
    temporary.rename(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
