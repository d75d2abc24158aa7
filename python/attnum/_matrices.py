# SPDX-License-Identifier: BSD-3-Clause
"""The parts of SOFT by themselves, on the CPU: kernel matrices, landmarks, inverses."""
from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from ._library import (NUMPY, ArgumentError, Context, Status, as_dict, choice, ffi, fill_group, interface, lib, must,
                       numbers, view)

_own = threading.local()


def _context():
    """A context of the thread's own, with as many threads as OpenMP would use."""
    if not hasattr(_own, "context") or _own.context.is_from_before_fork():
        _own.context = Context()
    return _own.context._context


def _result(out, like, owner, rows, cols):
    """The array that is written to, `out` or a new one with like's heads, and its view."""
    if out is None:
        out = np.empty((*owner.__array_interface__["shape"][:-2], rows, cols), NUMPY[like.dtype])
    return out, view("out", out, writable=True)


def kernel(x: Any, y: Any = None, *, scale: float | None = None, distance: str = "direct", out: Any = None) -> Any:
    """Gaussian kernel matrices K_ij = exp(-s |x_i - y_j|^2) of every head (SOFT, IJCV Eq. 4, 5 and 8).

    x         b x h x p x d (or h x p x d, p x d), float32 or float64
    y         b x h x q x d; None: y = x, and K is symmetric to the last bit
    scale     s > 0; default 1/(2 sqrt(d)), as in the published code
    distance  listed("distance")

    Returns b x h x p x q. With distance "direct" |K_ij - exact| <= ((d + 4) s |x_i - y_j|^2 + 3) u K_ij."""
    tx, x = view("x", x)
    if tx.cols < 1:
        raise ArgumentError(f"x: width is {tx.cols}, expected at least 1")
    s = lib.atn_kernel_scale(lib.ATN_SCALE_HEAD, 0, 1, tx.cols) if scale is None else scale
    how = choice(ffi.typeof("atn_distance"), distance, "distance")
    if y is None:
        out, (to, _) = _result(out, tx, x, tx.rows, tx.rows)
        must(lib.atn_gaussian_self(_context(), how, s, tx, to), _context(), s="scale", k="out")
    else:
        ty, y = view("y", y)
        out, (to, _) = _result(out, tx, x, tx.rows, ty.rows)
        must(lib.atn_gaussian_cross(_context(), how, s, tx, ty, to), _context(), s="scale", k="out")
    return out


def sample(tokens: Any, kind: str, *, out: Any = None, **options: Any) -> Any:
    """Landmarks L (m x d) of the tokens (n x d) of every head (SOFT, IJCV section 3.2).

        attnum.sample(tokens, "pool", height=28, width=28, stride=4)    # 49 averages of 4 x 4
        attnum.sample(tokens, "rpcholesky", count=49, uniforms=numpy.random.default_rng(1).random(49))

    tokens: b x h x n x d (or h x n x d, n x d). kind: listed("sampling"); its options and cost: attnum/sampling.h."""
    view_of, tokens = view("tokens", tokens)
    keep: list[Any] = []
    sampling = ffi.new("atn_sampling *")
    fill_group(sampling[0], ffi.typeof("atn_sampling"), {"kind": kind, **options}, NUMPY[view_of.dtype], keep,
               "sampling")
    count = ffi.new("int64_t *")
    if view_of.rows < 1 or view_of.cols < 1:
        raise ArgumentError(f"tokens: {view_of.rows} of width {view_of.cols}, expected at least 1 each")
    must(lib.atn_sampling_count(_context(), sampling, view_of.rows, view_of.cols, count), _context())
    out, (to, _) = _result(out, view_of, tokens, count[0], view_of.cols)
    must(lib.atn_sample(_context(), sampling, view_of, to), _context(), landmarks="out")
    return out


class Inverse(NamedTuple):
    """What atn_inverse says of the matrices A of b x h heads."""

    x: Any  # X, of A's shape
    status: Status  # the worst matrix's
    infos: list[dict[str, Any]]  # of each, batch after batch: status, stop, iterations, alpha, residual, rank, ...
    traces: list[dict[str, Any]]  # of each, what was asked for: a metric's values for X_0, X_1, ..., "iterates"


def _inverse_desc(method, constants):
    desc = ffi.new("atn_inverse_desc *")
    fill_group(desc[0], ffi.typeof("atn_inverse_desc"), {"method": method, **constants}, None, None, "inverse")
    return desc


def inverse(a: Any, method: str = "nr-paper", *, out: Any = None, trace: tuple[str, ...] = (), iterates: bool = False,
            pinv: Any = None, projector: Any = None, **constants: Any) -> Inverse:
    """X ~ A^-1 or A+ by a named method, for exactly symmetric matrices A.

        x, status, infos, traces = attnum.inverse(a, "nr-paper", iterations=20, trace=("residual",))
        traces[0]["residual"]               # |A X_k A - A|_2 / |A|_2 for k = 0 .. 20, the papers' metric

    a           b x h x m x m (or h x m x m, m x m), float32 or float64, every matrix dense
    method      listed("inverse"), with the published constants; `constants` replaces some: iterations, alpha, ridge,
                stopping="best", ... (atn_inverse_desc in attnum/inverse.h)
    trace       names of listed("metric"), recorded in f64; "inverse_error" needs pinv, A+, and "range_residual" needs
                projector, Pi, both of A's shape
    iterates    also record every X_k

    Outcomes that are no errors: NOT_CONVERGED, STAGNATED, SINGULAR (the header says what X is), NONFINITE (X = 0)."""
    ta, a = view("a", a)
    desc = _inverse_desc(method, constants)
    count, m = ta.batch * ta.heads, ta.rows
    out, (to, _) = _result(out, ta, a, m, m)
    infos = ffi.new("atn_inverse_info[]", max(1, count))
    traces, recorded = ffi.NULL, []
    truth = {"pinv": pinv, "projector": projector}  # must live until the call is over
    if trace or iterates:
        traces = ffi.new("atn_trace[]", max(1, count))
        for name, metric in (("pinv", "inverse_error"), ("projector", "range_residual")):
            if truth[name] is not None:
                truth[name] = numbers(name, truth[name], np.float64)
                if truth[name].shape != interface("a", a)[0]["shape"]:
                    raise ArgumentError(f"{name}: shape {truth[name].shape}, expected that of a")
            elif metric in trace:
                raise ArgumentError(f"{name}: none, but {metric} needs it")
        capacity = min(max(desc.iterations, 0) + 1, 2**31 - 1)
        for i in range(count):
            arrays = {name: np.empty(capacity) for name in trace}
            if iterates:
                arrays["iterates"] = np.empty((capacity, m, m))
                traces[i].iterates = ffi.cast("double *", arrays["iterates"].ctypes.data)
            for name in trace:
                traces[i].values[choice(ffi.typeof("atn_metric"), name, "trace")] = ffi.cast(
                    "double *", arrays[name].ctypes.data)
            for name, array in truth.items():
                if array is not None:
                    setattr(traces[i], name, ffi.cast("double *", array.ctypes.data + 8 * i * m * m))
            traces[i].capacity = capacity
            recorded.append(arrays)
    status = must(lib.atn_inverse(_context(), desc, ta, to, infos, traces), _context(), x="out")
    return Inverse(out, status, [as_dict(infos[i]) for i in range(count)],
                   [{name: array[:traces[i].length] for name, array in arrays.items()}
                    for i, arrays in enumerate(recorded)])


def inverse_apply(a: Any, w: Any, method: str = "pivoted-cholesky", *, out: Any = None, **constants: Any) -> Any:
    """Y = X W with X as `inverse` has it; pivoted-cholesky never forms X. w: b x h x m x k."""
    (ta, a), (tw, w) = view("a", a), view("w", w)
    out, (to, _) = _result(out, ta, a, tw.rows, tw.cols)
    must(lib.atn_inverse_apply(_context(), _inverse_desc(method, constants), ta, tw, to, ffi.NULL), _context(), y="out")
    return out


def inverse_backward(a: Any, dx: Any, method: str = "nr-paper", *, gradient: str = "closed", out: Any = None,
                     **constants: Any) -> Any:
    """dA from dX, the derivatives of a scalar by A and by X, for changes of A that keep it symmetric. gradient:
    listed("gradient"); "closed" is dA = -X^T dX X^T (SOFT, IJCV Eq. 12)."""
    (ta, a), (td, dx) = view("a", a), view("dx", dx)
    out, (to, _) = _result(out, ta, a, ta.rows, ta.cols)
    how = choice(ffi.typeof("atn_gradient"), gradient, "gradient")
    must(lib.atn_inverse_backward(_context(), _inverse_desc(method, constants), how, ta, td, to, ffi.NULL), _context(),
         da="out")
    return out
