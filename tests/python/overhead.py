#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""overhead.py: what a plan's call from Python takes beyond the C function: medians, by turns, on one thread."""
import time

import attnum
import numpy as np
from attnum._library import ffi, lib

POOL = {"kind": "pool", "height": 28, "width": 28, "stride": 4}


def main(n=784, repeats=2000):
    for op, d, options in (("sima", 1, {}), ("sima", 32, {}), ("soft", 32, {"sampling": POOL})):
        q = np.random.default_rng(1).standard_normal((n, d), np.float32)
        y = np.empty_like(q)
        plan = attnum.Plan.of(op, q, None, q, threads=1, **options)
        plan(q, v=q, out=y)
        out = ffi.new("atn_tensor *", plan._views["out"][0])
        calls = {"C": lambda: lib.atn_attention_forward(plan._plan, plan._inputs, out, ffi.NULL),
                 "out=": lambda: plan(q, v=q, out=y), "new array": lambda: plan(q, v=q)}
        times = {name: [] for name in calls}
        for _ in range(repeats):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                times[name].append(1e6 * (time.perf_counter() - start))
        medians = {name: np.median(values) for name, values in times.items()}
        print(f"{op}, n = {n}, d = {d}: C {medians['C']:.1f} us, and beyond it with out= "
              f"{medians['out='] - medians['C']:.1f} us, with a new array {medians['new array'] - medians['C']:.1f} us")


if __name__ == "__main__":
    main()
