# SPDX-License-Identifier: BSD-3-Clause
"""The operators for PyTorch: differentiable calls, modules, tokens of a model.

    y = attnum.torch.attention("sima", q, k, v)         a call, differentiable by q, k, v and by parameters
    layer = attnum.torch.Attention("xnorm", gamma=torch.ones(4, 1, 1))       a module; gamma is its parameter
    with attnum.torch.capture(model) as tokens:         Q, K and V of every attention layer of a model
        model(images)
    attnum.torch.inspect(model, images, html="model.html")                   `attnum inspect` of all of them

Both calls are the operator torch.ops.attnum.attention, which torch.compile and torch.export keep whole; derivatives
are first ones, by reverse mode. Tensors on the CPU are not copied, unless their last dimension is strided or they
repeat (expand). On CUDA they are read where they are, on the current stream; parameters and other arrays of a
description are read again at every call. A GPU has run the package's own tests (tests/python/test_cuda.py), but not all
of this module's."""
from __future__ import annotations

import collections
import functools
import json
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    import torch
    from torch import library
    from torch.autograd import forward_ad
except ImportError as error:
    raise ImportError("attnum.torch needs PyTorch, which is not installed: pip install torch") from error

from ._attention import Outcome, Plan
from ._capture import Capture, Layer, capture, inspect
from ._library import NAMES, ArgumentError, Process, UnsupportedError, ffi, fields_of, lib

__all__ = ["Attention", "Capture", "Layer", "attention", "capture", "inspect"]

_TYPES = {"int64_t": torch.int64, "double": torch.float64, "atn_tensor": None}  # None: the plan's
_FLOATS = (torch.float32, torch.float64, torch.float16)
_KEPT = 64  # plans, the last used ones


# ---- Options ----

@functools.cache
def _places(op):
    """Where the options of an operator have arrays: {place: (their type, name of the parameter or None)}."""
    desc = ffi.new("atn_attention_desc *")
    start = int(ffi.cast("intptr_t", desc))
    parameters = {int(ffi.cast("intptr_t", lib.atn_attention_parameter(desc, getattr(lib, code)))) - start: name
                  for code, (name, _) in NAMES["parameter"].items()}
    places = {}

    def walk(struct, prefix, offset):
        for name, field in fields_of(struct).items():
            kind, place = field.type, offset + field.offset
            pointed = kind.item.cname if kind.kind == "pointer" else kind.cname
            if pointed in _TYPES and kind.kind in ("pointer", "struct"):
                places[prefix + name] = (_TYPES[pointed], parameters.get(place))
            elif kind.kind == "struct":
                walk(getattr(struct, name), prefix if name == op and not prefix else f"{prefix}{name}.", place)

    walk(desc, "", 0)
    return places


def _flat(options, prefix=""):
    """{place: value} of options, groups of them taken apart."""
    found = {}
    for name, value in options.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def _grouped(flat):
    """The options, from what _flat makes of them."""
    options: dict[str, Any] = {}
    for place, value in flat.items():
        *groups, name = place.split(".")
        functools.reduce(lambda inner, group: inner.setdefault(group, {}), groups, options)[name] = value
    return options


@torch.compiler.disable
def _split(op, options):
    """The arrays of options by place, and all else as a text, which also says where the arrays belong."""
    flat, places = _flat(options), _places(op)
    arrays = {place: flat.pop(place) for place in list(flat) if place in places and flat[place] is not None}
    arrays = {place: torch.as_tensor(np.asarray(x) if isinstance(x, (list, tuple)) else x) for place, x in arrays.items()}
    rest = {name: value.item() if hasattr(value, "item") else value for name, value in flat.items()}
    try:
        return arrays, json.dumps([op, list(arrays), rest])
    except TypeError:
        wrong = next(name for name, value in rest.items() if not isinstance(value, (bool, int, float, str, type(None))))
        raise ArgumentError(f"{wrong}: {type(rest[wrong]).__name__}, expected a number, a name or a dict") from None


_parsed = functools.cache(json.loads)


# ---- Plans ----

_plans: collections.OrderedDict[Any, Plan] = collections.OrderedDict()
_lock = threading.Lock()


def _memory(x):
    """The tensor as memory: itself, unless its last dimension is strided or it repeats."""
    strides = [stride for size, stride in zip(x.shape, x.stride()) if size > 1]
    dense = 0 not in strides and (x.ndim == 0 or x.shape[-1] < 2 or x.stride(-1) == 1)
    return (x if dense else x.contiguous()).detach().resolve_neg()


def _shown(x):
    """What a plan is given: NumPy's view on the CPU, the tensor itself on CUDA."""
    return x if x is None or x.is_cuda else x.numpy()


def _plan_for(q, k, v, arrays, options):
    """A plan for tensors like these, kept for the next call, and the tensors as it takes them. It reads the arrays at
    every call, so it is one for the memory that they are in; on CUDA, where it copies them, it is not kept."""
    op, names, rest = _parsed(options)
    given = [None if x is None else _memory(x) for x in (q, k, v)]
    types = [q.dtype if _places(op)[name][0] is None else _places(op)[name][0] for name in names]
    for name, x, dtype in zip(names, arrays, types):
        if not torch.can_cast(x.dtype, dtype) or (x.dtype == torch.bool and not dtype.is_floating_point):
            raise ArgumentError(f"{name}: dtype {x.dtype}, expected {dtype}")
    arrays = [x.detach().to("cpu", dtype).contiguous() for x, dtype in zip(arrays, types)]
    stream = torch.cuda.current_stream(q.device).cuda_stream or 1 if q.is_cuda else None  # 1: cudaStreamLegacy
    key = (options, *(x is not None and (x.shape, x.dtype) for x in given), *((x.data_ptr(), x.shape) for x in arrays),
           q.device, stream, Process.forks)
    kept = not (q.is_cuda and arrays)
    with _lock:
        plan = _plans.get(key)
        if plan is not None:
            _plans.move_to_end(key)
    if plan is None:
        full = _grouped(rest | {name: x.numpy() for name, x in zip(names, arrays)})
        plan = Plan.of(op, *map(_shown, given), **full, **({"stream": stream} if q.is_cuda else {}))
        with _lock:
            if kept:
                _plans[key] = plan
            while len(_plans) > _KEPT:
                _plans.popitem(last=False)
    return plan, [_shown(x) for x in given]


def _masks(query_mask, key_mask):
    return {"query_mask": None if query_mask is None else _shown(query_mask.contiguous()),
            "key_mask": None if key_mask is None else _shown(key_mask.contiguous())}


# ---- The operator ----

@library.custom_op("attnum::attention", mutates_args=())
def _attention(q: torch.Tensor, k: torch.Tensor | None, v: torch.Tensor, arrays: Sequence[torch.Tensor],
               query_mask: torch.Tensor | None, key_mask: torch.Tensor | None, options: str) -> torch.Tensor:
    plan, given = _plan_for(q, k, v, arrays, options)
    y = q.new_empty((*q.shape[:-1], v.shape[-1]))
    plan(*given, out=_shown(y), **_masks(query_mask, key_mask))
    return y


@_attention.register_fake
def _(q, k, v, arrays, query_mask, key_mask, options):
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def _differentiable(arrays, options):
    """(index among the arrays, name of the parameter) of those that have a gradient."""
    op, names, _ = _parsed(options)
    return [(i, _places(op)[name][1]) for i, name in enumerate(names) if _places(op)[name][1]]


@library.custom_op("attnum::attention_backward", mutates_args=())
def _backward(dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor | None, v: torch.Tensor,
              arrays: Sequence[torch.Tensor], query_mask: torch.Tensor | None, key_mask: torch.Tensor | None,
              options: str) -> list[torch.Tensor]:
    plan, given = _plan_for(q, k, v, arrays, options)
    parameters = _differentiable(arrays, options)
    out = {name: torch.empty_like(x, memory_format=torch.contiguous_format)
           for name, x in (("q", q), ("k", k), ("v", v)) if x is not None}
    out |= {name: torch.empty_like(arrays[i], dtype=q.dtype, memory_format=torch.contiguous_format)
            for i, name in parameters}
    plan.backward(_shown(_memory(dout)), *given, out={name: _shown(x) for name, x in out.items()},
                  parameters=tuple(name for _, name in parameters), **_masks(query_mask, key_mask))
    return [*(out[name] for name in ("q", "k", "v") if name in out),
            *(out[name].to(arrays[i].dtype) for i, name in parameters)]


@_backward.register_fake
def _(dout, q, k, v, arrays, query_mask, key_mask, options):
    return [torch.empty_like(x, memory_format=torch.contiguous_format)
            for x in (q, k, v, *(arrays[i] for i, _ in _differentiable(arrays, options))) if x is not None]


def _keep_for_backward(ctx, inputs, output):
    q, k, v, arrays, query_mask, key_mask, ctx.options = inputs
    ctx.save_for_backward(q, k, v, query_mask, key_mask, *arrays)


def _gradients(ctx, dout):
    q, k, v, query_mask, key_mask, *arrays = ctx.saved_tensors
    found = list(_backward(dout, q, k, v, arrays, query_mask, key_mask, ctx.options))
    dq, dk, dv = found.pop(0), None if k is None else found.pop(0), found.pop(0)
    of_arrays: list[torch.Tensor | None] = [None] * len(arrays)
    for (i, _), gradient in zip(_differentiable(arrays, ctx.options), found):
        of_arrays[i] = gradient
    return dq, dk, dv, of_arrays, None, None, None


_attention.register_autograd(_gradients, setup_context=_keep_for_backward)


# ---- Calls and modules ----

def _judge_tensors(q, k, v, query_mask, key_mask):
    for name, x in (("q", q), ("k", k), ("v", v), ("query_mask", query_mask), ("key_mask", key_mask)):
        if x is None and name in "qv":
            raise ArgumentError(f"{name}: none, expected a tensor")
        if x is not None and not isinstance(x, torch.Tensor):
            raise ArgumentError(f"{name}: {type(x).__name__}, expected a torch.Tensor")
        if x is not None and x.device != q.device:
            raise ArgumentError(f"{name}: on {x.device}, but q on {q.device}")
        if x is not None and x.device.type not in ("cpu", "cuda"):
            raise ArgumentError(f"{name}: on {x.device}, expected cpu or cuda")
        if x is not None and x.layout != torch.strided:
            raise ArgumentError(f"{name}: {x.layout}, expected torch.strided")
        if x is not None and name in "qkv" and x.dtype not in _FLOATS:
            raise ArgumentError(f"{name}: dtype {x.dtype}, expected float32 or float64")


def _has_tangent(x):
    return x is not None and forward_ad.unpack_dual(x).tangent is not None


def _call(q, k, v, arrays, query_mask, key_mask, options):
    _judge_tensors(q, k, v, query_mask, key_mask)
    if not torch.compiler.is_compiling() and any(map(_has_tangent, (q, k, v, *arrays))):
        raise UnsupportedError("attention: derivatives are by reverse mode only, not by forward mode (jvp)")
    return _attention(q, k, v, arrays, query_mask, key_mask, options)


def attention(op: str, q: torch.Tensor, k: torch.Tensor | None = None, v: torch.Tensor | None = None, *,
              query_mask: torch.Tensor | None = None, key_mask: torch.Tensor | None = None,
              **options: Any) -> torch.Tensor:
    """Y = attention(Q, K, V), differentiable by q, k, v, and by the options that have a gradient
    (attnum.listed("parameter")), of which tensors are given. Arguments as for attnum.attention, without `out`.

        y = attnum.torch.attention("linformer", q, k, v, e=e)      # e.grad after y.sum().backward()
        y = attnum.torch.attention("softpp", q, v=v, gradient="steps", inverse="nr-paper", sampling={"kind": "pool",
                                   "height": 28, "width": 28, "stride": 4})

    q, k, v: b x h x n x d, b x h x n_k x d (None: K = Q), b x h x n_k x d_v, or with fewer dimensions, float32 or
    float64 on the CPU, also float16 on CUDA; layout="bnhd" as there. Plans are kept for the next call."""
    if query_mask is not None or key_mask is not None:
        options.setdefault("padding", True)
    arrays, text = _split(op, options)
    return _call(q, k, v, list(arrays.values()), query_mask, key_mask, text)


class Attention(torch.nn.Module):
    """An operator as a module: forward(q, k=None, v=..., query_mask=None, key_mask=None). Of its options those with a
    gradient (attnum.listed("parameter")) are its parameters, by these names, and other arrays its buffers.

        layer = attnum.torch.Attention("linformer", e=torch.randn(784, 64) / 8)
        y = layer(q, k, v)                  # b x h x n x d_v
        layer.e.grad                        # after y.sum().backward()
        layer.outcome(q, k, v).status       # how it went

    Projections of Q, K and V and of the heads' outputs are torch.nn.Linear's business."""

    def __init__(self, op: str, **options: Any):
        super().__init__()
        arrays, self.options = _split(op, options)
        given = _flat(options)
        self.op, self.names = op, []
        for place, x in arrays.items():
            parameter = _places(op)[place][1]
            self.names.append(parameter or place.rpartition(".")[2])
            if parameter:
                x = x.to(torch.get_default_dtype()) if isinstance(given[place], (list, tuple)) else x
                x = x if isinstance(x, torch.nn.Parameter) else torch.nn.Parameter(x.detach().clone())
                self.register_parameter(parameter, x)
            else:
                self.register_buffer(self.names[-1], x)

    def _arrays(self):
        return [getattr(self, name) for name in self.names]

    def forward(self, q: torch.Tensor, k: torch.Tensor | None = None, v: torch.Tensor | None = None, *,
                query_mask: torch.Tensor | None = None, key_mask: torch.Tensor | None = None) -> torch.Tensor:
        return _call(q, k, v, self._arrays(), query_mask, key_mask, self.options)

    def outcome(self, q: torch.Tensor, k: torch.Tensor | None = None, v: torch.Tensor | None = None,
                *, query_mask: torch.Tensor | None = None, key_mask: torch.Tensor | None = None) -> Outcome:
        """How a call with these tensors goes (attnum.Outcome); it computes once more, without gradients."""
        _judge_tensors(q, k, v, query_mask, key_mask)
        plan, given = _plan_for(q, k, v, self._arrays(), self.options)
        plan(*given, out=_shown(q.new_empty((*q.shape[:-1], given[2].shape[-1]))), **_masks(query_mask, key_mask))
        return plan.outcome()

    def extra_repr(self) -> str:
        return ", ".join([self.op, *(f"{name}={value}" for name, value in _parsed(self.options)[2].items())])
