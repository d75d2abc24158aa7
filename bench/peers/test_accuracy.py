#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_accuracy.py: what train_accuracy.py makes of pictures, steps and accuracies. Exits with 77 without PyTorch and NumPy."""
import math
import sys

try:
    import torch
    import train_accuracy as under_test
except ImportError as missing:
    print(missing)
    sys.exit(77)

failed = 0


def check(what, right):
    global failed
    failed += not right
    print("ok  " if right else "FAIL", what)


# tables of Student's t
for freedom, t in ((1, 12.7062), (4, 2.77645), (30, 2.04227)):
    check(f"t = {t} with {freedom} degrees of freedom", abs(under_test.chance(t, freedom) - 0.05) < 1e-6)
    check("and back", abs(under_test.interval(freedom) - t) < 1e-4)
check("no difference is likely", under_test.chance(0, 3) == 1)

# as experiments/train/README.md has it: a warm-up over an epoch, a cosine to a hundredth
rates = [under_test.rate_of(step, 10, 5) for step in range(1, 51)]
check("half of the warm-up", math.isclose(rates[4], 1e-3))
check("its end", math.isclose(rates[9], 2e-3))
check("the middle of the cosine", math.isclose(rates[29], 2e-3 * 0.505))
check("the last step", math.isclose(rates[49], 2e-5))
check("one epoch warms up for a tenth", math.isclose(under_test.rate_of(1, 10, 1), 2e-3))

pictures = torch.zeros(500, 30, 30)
pictures[:, 1:-1, 1:-1] = torch.arange(784.0).view(28, 28) + 1
cut = under_test.crops(pictures, torch.Generator().manual_seed(1))
seen = {tuple(image[9, 9:11].tolist()) for image in cut}
whole = {(9 + down) * 28 + 9 + right + 1 for down in (-1, 0, 1) for right in (-1, 0, 1)}
flipped = {(9 + down) * 28 + 18 + right + 1 for down in (-1, 0, 1) for right in (-1, 0, 1)}
check("every move, flipped and not", seen == {(p, p + 1) for p in whole} | {(p, p - 1) for p in flipped})

rows = [{"attnum": a, "pytorch": b} for a, b in ((0.90, 0.80), (0.80, 0.70), (0.70, 0.61))]
check("a difference that hardly varies is not by chance", under_test.judge("x", rows) < 2e-3)
check("equal accuracies", under_test.judge("x", [{"attnum": 0.5, "pytorch": 0.5}] * 3) == 1)
check("always apart by the same", under_test.judge("x", [{"attnum": 0.5, "pytorch": 0.25}] * 3) == 0)
sys.exit(1 if failed else 0)
