# SPDX-License-Identifier: BSD-3-Clause
"""The parts of SOFT by themselves: kernel matrices, landmarks, inverses."""
from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from ._library import (NUMPY, ArgumentError, Context, Status, as_dict, choice, device_of, ffi, fields_of, fill_group, lib,
                       must, numbers, set_view)

_own = threading.local()


class _Call:
    """A call's context, of the thread's own, on the device and stream of its first array, and the views of its arrays.
    An error names the arguments as Python does."""

    def __init__(self, first, stream):
        contexts, key = _own.__dict__.setdefault("contexts", {}), (device_of(first), stream)
        if key not in contexts or contexts[key].is_from_before_fork():
            contexts[key] = Context(device=key[0], stream=stream)
        self.context, self.owners, self.dimensions = contexts[key], [], 0

    def view(self, name, x, writable=False):
        tensor = ffi.new("atn_tensor *")
        owner, dimensions = set_view(tensor, name, x, writable, self.context.device, stream=self.context.stream)
        self.owners.append(owner)
        self.dimensions = self.dimensions or dimensions
        return tensor

    def shape(self, like, rows, cols):
        """With the first array's dimensions and like's heads."""
        return (like.batch, like.heads, rows, cols)[4 - self.dimensions:]

    def result(self, out, like, rows, cols):
        """The array that is written to, `out` or a new one, and its view."""
        if out is None and self.context.device != "cpu":
            raise ArgumentError("out: none, but on CUDA it must be given")
        out = np.empty(self.shape(like, rows, cols), NUMPY[like.dtype]) if out is None else out
        return out, self.view("out", out, writable=True)

    def __call__(self, function, *arguments, **names):
        return must(function(self.context._context, *arguments), self.context._context, **names)


def kernel(x: Any, y: Any = None, *, scale: float | None = None, distance: str = "direct", out: Any = None,
           stream: int | None = None) -> Any:
    """Gaussian kernel matrices K_ij = exp(-s |x_i - y_j|^2) of every head (SOFT, IJCV Eq. 4, 5 and 8).

    x         b x h x p x d (or h x p x d, p x d), float32 or float64
    y         b x h x q x d; None: y = x, and K is symmetric to the last bit
    scale     s > 0; default 1/(2 sqrt(d)), as in the published code
    distance  listed("distance")
    stream    of CUDA memory, as for Plan; `out` must then be given

    Returns b x h x p x q. With distance "direct" |K_ij - exact| <= ((d + 4) s |x_i - y_j|^2 + 3) u K_ij."""
    call = _Call(x, stream)
    tx = call.view("x", x)
    if tx.cols < 1:
        raise ArgumentError(f"x: width is {tx.cols}, expected at least 1")
    s = lib.atn_kernel_scale(lib.ATN_SCALE_HEAD, 0, 1, tx.cols) if scale is None else scale
    how = choice(ffi.typeof("atn_distance"), distance, "distance")
    if y is None:
        out, to = call.result(out, tx, tx.rows, tx.rows)
        call(lib.atn_gaussian_self, how, s, tx, to, s="scale", k="out")
    else:
        ty = call.view("y", y)
        out, to = call.result(out, tx, tx.rows, ty.rows)
        call(lib.atn_gaussian_cross, how, s, tx, ty, to, s="scale", k="out")
    return out


def _uploaded(call, sampling, keep):
    """The description with its arrays on the device, and their memory."""
    taken = []
    for name, field in fields_of(sampling).items():
        place = getattr(sampling, name)
        place = place.data if field.type.cname == "atn_tensor" else place if field.type.kind == "pointer" else ffi.NULL
        if not place:
            continue
        array = next(array for array in keep if array.ctypes.data == int(ffi.cast("intptr_t", place)))
        memory = ffi.new("void **")
        call(lib.atn_allocate, array.nbytes, memory)
        taken.append(ffi.gc(memory[0], lambda memory: lib.atn_release(call.context._context, memory)))
        call(lib.atn_upload, memory[0], ffi.from_buffer(array), array.nbytes)
        if field.type.kind == "pointer":
            setattr(sampling, name, ffi.cast(field.type, memory[0]))
        else:
            getattr(sampling, name).data = memory[0]
    return taken


def sample(tokens: Any, kind: str, *, out: Any = None, stream: int | None = None, **options: Any) -> Any:
    """Landmarks L (m x d) of the tokens (n x d) of every head (SOFT, IJCV section 3.2).

        attnum.sample(tokens, "pool", height=28, width=28, stride=4)    # 49 averages of 4 x 4
        attnum.sample(tokens, "rpcholesky", count=49, uniforms=numpy.random.default_rng(1).random(49))

    tokens: b x h x n x d (or h x n x d, n x d). kind: listed("sampling"); its options and cost: attnum/sampling.h. For
    tokens in CUDA memory, which `stream` is about, `out` must be given."""
    call = _Call(tokens, stream)
    to_sample = call.view("tokens", tokens)
    if to_sample.rows < 1 or to_sample.cols < 1:
        raise ArgumentError(f"tokens: {to_sample.rows} of width {to_sample.cols}, expected at least 1 each")
    keep: list[Any] = []
    sampling = ffi.new("atn_sampling *")
    fill_group(sampling[0], ffi.typeof("atn_sampling"), {"kind": kind, **options}, NUMPY[to_sample.dtype], keep,
               "sampling")
    count = ffi.new("int64_t *")
    uploaded = _uploaded(call, sampling, keep) if call.context.device != "cpu" else keep
    call(lib.atn_sampling_count, sampling, to_sample.rows, to_sample.cols, count)
    out, to = call.result(out, to_sample, count[0], to_sample.cols)
    call(lib.atn_sample, sampling, to_sample, to, landmarks="out")
    del uploaded
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
            pinv: Any = None, projector: Any = None, stream: int | None = None, **constants: Any) -> Inverse:
    """X ~ A^-1 or A+ by a named method, for exactly symmetric matrices A.

        x, status, infos, traces = attnum.inverse(a, "nr-paper", iterations=20, trace=("residual",))
        traces[0]["residual"]               # |A X_k A - A|_2 / |A|_2 for k = 0 .. 20, the papers' metric

    a           b x h x m x m (or h x m x m, m x m), float32 or float64, every matrix dense
    method      listed("inverse"), with the published constants; `constants` replaces some: iterations, alpha, ridge,
                stopping="best", ... (atn_inverse_desc in attnum/inverse.h)
    trace       names of listed("metric"), recorded in f64; "inverse_error" needs pinv, A+, and "range_residual" needs
                projector, Pi, both of A's shape
    iterates    also record every X_k
    stream      of CUDA memory, as for Plan; `out` must then be given

    Outcomes that are no errors: NOT_CONVERGED, STAGNATED, SINGULAR (the header says what X is), NONFINITE (X = 0)."""
    call = _Call(a, stream)
    ta = call.view("a", a)
    desc = _inverse_desc(method, constants)
    count, m = ta.batch * ta.heads, ta.rows
    out, to = call.result(out, ta, m, m)
    infos = ffi.new("atn_inverse_info[]", max(1, count))
    traces, recorded = ffi.NULL, []
    truth = {"pinv": pinv, "projector": projector}  # must live until the call is over
    if trace or iterates:
        traces = ffi.new("atn_trace[]", max(1, count))
        for name, metric in (("pinv", "inverse_error"), ("projector", "range_residual")):
            if truth[name] is not None:
                truth[name] = numbers(name, truth[name], np.float64)
                if truth[name].shape != call.shape(ta, m, ta.cols):
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
    status = call(lib.atn_inverse, desc, ta, to, infos, traces, x="out")
    return Inverse(out, status, [as_dict(infos[i]) for i in range(count)],
                   [{name: array[:traces[i].length] for name, array in arrays.items()}
                    for i, arrays in enumerate(recorded)])


def inverse_apply(a: Any, w: Any, method: str = "pivoted-cholesky", *, out: Any = None,
                  outcome: bool = False, **constants: Any) -> Any:
    """Y = X W with X as `inverse` has it; pivoted-cholesky never forms X. w: b x h x m x k. CPU only. With outcome=True
    (Y, status), the status as `inverse` has it."""
    call = _Call(a, None)
    ta, tw = call.view("a", a), call.view("w", w)
    out, to = call.result(out, ta, tw.rows, tw.cols)
    status = call(lib.atn_inverse_apply, _inverse_desc(method, constants), ta, tw, to, ffi.NULL, y="out")
    return (out, status) if outcome else out


def inverse_backward(a: Any, dx: Any, method: str = "nr-paper", *, gradient: str = "closed", out: Any = None,
                     outcome: bool = False, stream: int | None = None, **constants: Any) -> Any:
    """dA from dX, the derivatives of a scalar by A and by X, for changes of A that keep it symmetric. gradient:
    listed("gradient"); "closed" is dA = -X^T dX X^T (SOFT, IJCV Eq. 12). With outcome=True (dA, status)."""
    call = _Call(a, stream)
    ta, td = call.view("a", a), call.view("dx", dx)
    out, to = call.result(out, ta, ta.rows, ta.cols)
    how = choice(ffi.typeof("atn_gradient"), gradient, "gradient")
    status = call(lib.atn_inverse_backward, _inverse_desc(method, constants), how, ta, td, to, ffi.NULL, da="out")
    return (out, status) if outcome else out
