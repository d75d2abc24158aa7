"""Regenerates SOFT's figure of convergence, and plots its numbers again with matplotlib: curves.png."""
import subprocess

import attnum
from matplotlib import pyplot

options = ["--quick", "--input", "photos", "--variant", "nr-paper", "--dtype", "f64", "--out", "results"]
subprocess.run(["attnum", "run", "convergence/curves", *options], check=True)
table = attnum.read("results/convergence/curves.csv")  # a dict of NumPy arrays
for sampling, stage in sorted(set(zip(table["sampling"], table["stage"]))):
    line = (table["sampling"] == sampling) & (table["stage"] == stage)
    pyplot.semilogy(table["iteration"][line], table["residual_mean"][line], label=f"{sampling}, stage {stage}")
pyplot.legend()
pyplot.savefig("curves.png")
