# SPDX-License-Identifier: BSD-3-Clause
"""Made-up pictures in Fashion-MNIST's format, the brighter the higher their label."""
import gzip
import random


def write_pictures(folder, name, count):
    draw = random.Random(name)
    labels = bytes(draw.randrange(10) for _ in range(count))
    pixels = b"".join(bytes(draw.randrange(60) + 18 * label for _ in range(784)) for label in labels)
    for what, sizes, values in (("images-idx3", (count, 28, 28), pixels), ("labels-idx1", (count,), labels)):
        header = bytes((0, 0, 8, len(sizes))) + b"".join(size.to_bytes(4, "big") for size in sizes)
        with gzip.open(f"{folder}/{name}-{what}-ubyte.gz", "wb") as file:
            file.write(header + values)
