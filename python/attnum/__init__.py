# SPDX-License-Identifier: BSD-3-Clause
"""attnum: numerical analysis and verification of softmax-free attention.

    attnum.check(output, op="softpp", q=q, v=v, dtype="bf16").assert_ok()     is my kernel right?
    attnum.attention("soft", q, v=v, sampling=..., inverse="nr-paper")        use an operator; Plan: many times
    attnum.inverse(a, "nr-paper", trace=("residual",))                        inverses; kernel, sample
    attnum.read("curves.csv")                                                 what an experiment has written

Arrays are n x d, h x n x d or b x h x n x d. Errors are exceptions with the library's sentence, numerical outcomes are
values (Status). Options and formulas are those of the C library's headers (attnum/operators.h)."""
from importlib.metadata import PackageNotFoundError, version

from ._attention import Outcome, Plan, attention, listed, operators
from ._check import Case, CheckResult, cases, check
from ._library import ArgumentError, Error, OutOfMemoryError, Status, UnsupportedError
from ._matrices import Inverse, inverse, inverse_apply, inverse_backward, kernel, sample
from ._read import Table, read

try:
    __version__ = version("attnum")
except PackageNotFoundError:  # in a build folder
    __version__ = "unknown"

__all__ = ["ArgumentError", "Case", "CheckResult", "Error", "Inverse", "OutOfMemoryError", "Outcome", "Plan", "Status",
           "Table", "UnsupportedError", "attention", "cases", "check", "inverse", "inverse_apply", "inverse_backward",
           "kernel", "listed", "operators", "read", "sample"]
