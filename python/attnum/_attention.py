# SPDX-License-Identifier: BSD-3-Clause
"""Attention operators: plans, calls, gradients."""
from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from ._library import (DTYPES, NAMES, NUMPY, ArgumentError, Context, Error, Status, UnsupportedError, as_dict, choice,
                       choices, device_of, ffi, fields_of, fill, interface, lib, members, must, set_view, text)

_GENERAL = ("storage", "causal", "padding", "passes")  # fields of a description that no operator names as its own


def operators() -> dict[str, dict[str, Any]]:
    """What the library's registry says about each operator, by name: `formula`, `source` (paper and equations),
    `parameters` (the options it reads), `capabilities` (a set of "f32", "backward", "mask", "cross", "causal", ...),
    `unsupported` (why what is missing is missing), `variants` (name: one line with the source; the first is the
    default)."""
    found = {}
    for code in members(ffi.typeof("atn_operator")):
        info = as_dict(lib.atn_operator_get(code))
        info["capabilities"] = {name.removeprefix("ATN_CAN_").lower() for name in dir(lib)
                                if name.startswith("ATN_CAN_") and info["capabilities"] & getattr(lib, name)}
        rows = lib.atn_operator_get(code).variants
        info["variants"] = {text(rows[i].name): text(rows[i].description) for i in range(info.pop("variant_count"))}
        found[info["name"]] = {key: info[key] for key in ("formula", "source", "parameters", "capabilities",
                                                         "unsupported", "variants")}
    return found


def listed(kind: str) -> dict[str, str]:
    """The names of a choice and what each is, from the library's lists: listed("inverse"), listed("sampling"), ..."""
    if kind not in NAMES:
        raise ArgumentError(f"kind: {kind!r}, expected one of {', '.join(NAMES)}")
    return dict(NAMES[kind].values())


class Outcome(NamedTuple):
    """How a call went."""

    status: Status  # Status.OK, or the worst head's
    landmarks: int  # m of soft and softpp; others 0
    failures: int  # heads that were not OK
    inverses: list[dict[str, Any]]  # soft, softpp: of each head, batch after batch: residual, iterations, alpha, ...


def _variant(op, variant, dtype):
    code = choice(ffi.typeof("atn_operator"), op, "op")
    info = lib.atn_operator_get(code)
    names = [text(info.variants[i].name) for i in range(info.variant_count)]
    if variant not in (None, *names):
        raise ArgumentError(f"variant: {variant!r}, expected one of {', '.join(names)}")
    return info, lib.atn_attention_variant(code, names.index(variant) if variant else 0, dtype)


def _describe(op, variant, dtype, options, keep):
    """The description: a variant's, with the options that were given."""
    info, chosen = _variant(op, variant, dtype)
    desc = ffi.new("atn_attention_desc *", chosen)
    fields = fields_of(desc)
    own = fields_of(getattr(desc, op)) if op in fields else {}
    read = {name.partition(".")[0] for name in text(info.parameters).split(", ")} - {op, "none"}
    allowed = [name for name in fields if name in _GENERAL or any(name == r or name.startswith(r + "_") for r in read)]
    options = dict(options)
    for name in options:
        if name not in own and name not in allowed:
            raise ArgumentError(f"{name}: {op} has no such option, only {', '.join([*own, *allowed])}")
    if isinstance(options.get("scale"), (int, float)) and "scale" in allowed:
        options["scale_value"], options["scale"] = options["scale"], "value"
    numpy_type = NUMPY.get(dtype)
    fill(desc, {name: value for name, value in options.items() if name not in own}, numpy_type, keep)
    if own:
        fill(getattr(desc, op), {name: value for name, value in options.items() if name in own}, numpy_type, keep)
    return desc


def _dtype(dtype):
    """atn_dtype of "f32", ... or of a NumPy dtype."""
    known = choices(ffi.typeof("atn_dtype"))
    if isinstance(dtype, str) and dtype in known:
        return known[dtype]
    try:
        return DTYPES[np.dtype(dtype).str]
    except (TypeError, KeyError):
        raise ArgumentError(f"dtype: {dtype!r}, expected one of {', '.join(known)} or NumPy's") from None


def _sizes(name, x, layout, device):
    """(batch, heads, rows, cols) and the type of an array."""
    found, _ = interface(name, x, str(device).partition(":")[0], -1)
    shape = tuple(found["shape"])
    if not 2 <= len(shape) <= 4:
        raise ArgumentError(f"{name}: {len(shape)} dimensions, expected n x d, h x n x d or b x h x n x d")
    shape = (1,) * (4 - len(shape)) + shape
    if layout == "bnhd" and len(found["shape"]) > 2:
        shape = (shape[0], shape[2], shape[1], shape[3])
    if found["typestr"] not in DTYPES:
        raise ArgumentError(f"{name}: dtype {np.dtype(found['typestr'])}, expected float32 or float64")
    if found["typestr"] == "<f2" and device == "cpu":
        raise UnsupportedError(f"{name}: dtype float16: the cpu computes in float32 and float64 only")
    if shape[3] < 1:
        raise ArgumentError(f"{name}: width is {shape[3]}, expected at least 1")
    return shape, found["typestr"]


class Plan(Context):
    """An operator on arrays of one shape, checked once, with all its memory; calls allocate nothing but their result.

        plan = attnum.Plan("soft", tokens=784, dim=32, heads=8, inverse="nr-paper",
                           sampling={"kind": "pool", "height": 28, "width": 28, "stride": 4})
        y = plan(q, v=v)                    # Y = K(Q,L) A+ K(L,Q) V (SOFT, IJCV Eq. 4-9)
        plan(q, v=v, out=y)                 # into existing memory
        plan.status, plan.outcome()         # how it went
        plan.backward(dy, q, v=v)           # {"q": ..., "v": ...}

    op        "soft", "softpp", "sima", ...: operators() has formulas, sources, options and variants
    tokens, dim, heads, batch, value_dim, key_tokens
              n, d, h, b; d_v (default d); n_k (default n)
    dtype     "f32", "f64" or NumPy's; CUDA also "f16"
    variant   a named choice of options (default: the first, the paper's)
    layout    "bhnd", b x h x n x d, or "bnhd", b x n x h x d, of all arrays; with fewer dimensions h x n x d,
              n x h x d, n x d. Nothing is copied.
    threads, isa
              0: as many as OpenMP would use, in a fork's child one; "auto", "base", "avx2", "avx512"
    device, stream
              "cpu", or "cuda" ("cuda:1") where the build has it: arrays then have __dlpack__ or
              __cuda_array_interface__, `out` must be given, the work is enqueued on `stream` (an address; default the
              legacy default stream) after what fills the arrays, which must live until it is done
    options   fields of the library's description (attnum/operators.h), the operator's own or general: a number, a name
              (listed("inverse")), an array, a dict of fields; inverse={"method": "nr", "alpha": 0.1} starts from the
              method's published constants. scale=0.1 is scale="value", scale_value=0.1. Arrays of the plan's
              type are read at every call, others are copied when the plan is made.

    Several threads may call a plan, one at a time. Raises ArgumentError, whose sentence names the argument,
    UnsupportedError, which says why, OutOfMemoryError, Error."""

    def __init__(self, op: str, tokens: int, dim: int, *, batch: int = 1, heads: int = 1, value_dim: int | None = None,
                 key_tokens: int | None = None, dtype: Any = "f32", variant: str | None = None, layout: str = "bhnd",
                 threads: int = 0, isa: str = "auto", device: str = "cpu", stream: int | None = None, **options: Any):
        if layout not in ("bhnd", "bnhd"):
            raise ArgumentError(f"layout: {layout!r}, expected bhnd or bnhd")
        super().__init__(threads, isa, device, stream)
        self._keep: list[Any] = []
        desc = _describe(op, variant, _dtype(dtype), options, self._keep)
        self._desc = desc
        self._shape = ffi.new("atn_attention_shape *")
        fill(self._shape, {"batch": batch, "heads": heads, "tokens": tokens, "dim": dim,
                           "value_dim": dim if value_dim is None else value_dim,
                           "key_tokens": tokens if key_tokens is None else key_tokens}, None, None)
        if desc.lsh.buckets:
            wanted, given = (batch, heads, desc.lsh.rounds, tokens), np.shape(options["buckets"])
            if given != wanted:
                raise ArgumentError(f"buckets: shape {given}, expected {wanted}")
        if self.device == "cpu" and desc.dtype == lib.ATN_BF16:
            raise ArgumentError("dtype: 'bf16', which NumPy lacks; expected f32 or f64")
        if self.device == "cuda":
            self._upload()
        pointer = ffi.new("atn_plan **")
        must(lib.atn_attention_plan(self._context, self._desc, self._shape, pointer), self._context)
        self._plan = pointer[0]
        self.op, self.layout, self.status = op, layout, Status.OK
        self._views = {name: ffi.new("atn_tensor *") for name in ("q", "k", "v", "out", "dout", "y", "dq", "dk", "dv")}
        self._dense: dict[str, Any] = {}  # sizes and type of the array that a view shows, where that is dense
        self._inputs = ffi.new("atn_attention_inputs *", {"q": self._views["q"]})
        self._lock = threading.Lock()

    @classmethod
    def of(cls, op: str, q: Any, k: Any = None, v: Any = None, *, layout: str = "bhnd", device: str | None = None,
           **options: Any) -> Plan:
        """A plan for arrays of these shapes and this type, on the device that q is on."""
        device = device_of(q) if device is None else device
        (batch, heads, tokens, dim), typestr = _sizes("q", q, layout, device)
        keys, _ = _sizes("k", k, layout, device) if k is not None else ((0, 0, tokens, 0), None)
        values, _ = _sizes("v", v, layout, device)
        options.setdefault("dtype", typestr)
        return cls(op, tokens, dim, batch=batch, heads=heads, value_dim=values[3], key_tokens=keys[2], layout=layout,
                   device=device, **options)

    def _upload(self):
        """The description's arrays, on the device."""
        device, memory = ffi.new("atn_attention_desc *"), ffi.new("void **")
        must(lib.atn_attention_upload(self._context, self._desc, self._shape, device, memory), self._context)
        self._desc, self._uploaded = device, memory[0]

    def __del__(self, free=lib.atn_plan_free, release=lib.atn_release):
        if hasattr(self, "_plan"):
            free(self._plan)
        if hasattr(self, "_uploaded"):
            release(self._context, self._uploaded)
        super().__del__()

    # ---- Arrays ----

    def _set(self, name, x, writable=False, title=None):
        """Lets the view of that name show x; returns what must live until the call is over, and the number of
        dimensions. Of NumPy's dense arrays like the one before only the address is new."""
        dense = type(x) is np.ndarray and x.flags.c_contiguous and self.device == "cpu"
        if dense and self._dense.get(name) == (x.shape, x.dtype) and (x.flags.writeable or not writable):
            self._views[name].data = ffi.from_buffer(x)
            return x, x.ndim
        self._dense.pop(name, None)
        found = set_view(self._views[name], title or name, x, writable, self.device, self.layout, self.stream)
        if dense:
            self._dense[name] = x.shape, x.dtype
        return found

    def _set_mask(self, name, mask, tokens):
        if mask is None:
            setattr(self._inputs, name, ffi.NULL)
            return None
        found, owner = interface(name, mask, self.device, self.stream)
        shape, wanted = tuple(found["shape"]), (self._shape.batch, tokens)
        if found["typestr"] not in ("|b1", "|u1") or found.get("strides") is not None:
            raise ArgumentError(f"{name}: dtype {np.dtype(found['typestr'])}, strides {found.get('strides')}, expected "
                                "contiguous bool or uint8")
        if shape != wanted:
            raise ArgumentError(f"{name}: shape {shape}, expected {wanted}")
        setattr(self._inputs, name, ffi.cast("unsigned char *", found["data"][0]))
        return owner

    def _set_inputs(self, q, k, v, query_mask, key_mask):
        if self.is_from_before_fork():
            raise Error("the plan was made before a fork, and its threads are the parent's: make one in the child")
        self._inputs.k = ffi.NULL if k is None else self._views["k"]
        self._inputs.v = ffi.NULL if v is None else self._views["v"]
        return (self._set("q", q), k is not None and self._set("k", k), v is not None and self._set("v", v),
                self._set_mask("query_mask", query_mask, self._shape.tokens),
                self._set_mask("key_mask", key_mask, self._shape.key_tokens))

    def _result(self, view, given, rows, cols, dimensions, title):
        """Lets a view show the array that is written to: what was given, or a new one. Returns what must live until
        the call is over, and the array."""
        s = self._shape
        if given is None and self.device != "cpu":
            raise ArgumentError(f"{title}: none, but on CUDA it must be given")
        if given is None:
            shape = (s.batch, rows, s.heads, cols) if self.layout == "bnhd" and dimensions > 2 else (s.batch, s.heads,
                                                                                                     rows, cols)
            given = np.empty(shape[4 - dimensions:], NUMPY[self._desc.dtype])
        return self._set(view, given, True, title), given

    # ---- Calls ----

    def __call__(self, q: Any, k: Any = None, v: Any = None, *, out: Any = None, query_mask: Any = None,
                 key_mask: Any = None) -> Any:
        """Y = attention(Q, K, V), b x h x n x d_v.

        q, k, v   b x h x n x d, b x h x n_k x d (None: K = Q), b x h x n_k x d_v, all of the plan's type; rows may be
                  strided, the last dimension is contiguous
        out       where Y is written; it must not overlap an input. Default: a new array
        query_mask, key_mask
                  for plans with padding=True: b x n and b x n_k of bool or uint8, false where there is no token, whose
                  row of Y is 0

        `status` then is OK, NOT_CONVERGED or SINGULAR (soft, softpp: a head's inverse; Y is computed with what it left)
        or NONFINITE (NaN or infinity in the inputs or in Y, which is NaN for such a head)."""
        with self._lock:
            alive = self._set_inputs(q, k, v, query_mask, key_mask)
            s = self._shape
            written, result = self._result("out", out, s.tokens, s.value_dim, alive[0][1], "out")
            self.status = must(lib.atn_attention_forward(self._plan, self._inputs, self._views["out"], ffi.NULL),
                               self._context)
            del alive, written
        return result

    def backward(self, dout: Any, q: Any, k: Any = None, v: Any = None, *, out: dict[str, Any] | None = None,
                 parameters: tuple[str, ...] = (), query_mask: Any = None, key_mask: Any = None,
                 after_forward: bool = False, y: Any = None) -> dict[str, Any]:
        """The vector-Jacobian product: with dout the derivative of a scalar by Y, its derivatives by q, k (where k is
        given) and v, of their shapes, and by each of `parameters` (listed("parameter")), of the shape it was given in.
        They are written to the arrays of `out`, by the same names, or to new ones, and returned as a dict. Needs no
        call before. `gradient` of soft and softpp says how the inverse is differentiated (listed("gradient")).
        after_forward: the plan's last call was forward, and the numbers in q, k, v and the parameters are still the
        same; what it summed over the tokens is then used again, and so is y, what that call returned, where it is
        given."""
        out = out or {}
        s = self._shape
        names = {"q": (s.tokens, s.dim), "k": (s.key_tokens, s.dim), "v": (s.key_tokens, s.value_dim)}
        unknown = set(out) - {*names, *parameters}
        if unknown:
            raise ArgumentError(f"out: {', '.join(sorted(unknown))}, expected {', '.join([*names, *parameters])}")
        gradients = ffi.new("atn_gradients *", {"after_forward": after_forward})
        with self._lock:
            inputs = self._set_inputs(q, k, v, query_mask, key_mask)
            alive, results = [self._set("dout", dout)], {}
            if y is not None:
                alive.append(self._set("y", y))
                gradients.y = self._views["y"]
            for (name, (rows, cols)), given in zip(names.items(), inputs):
                if not given:
                    continue
                written, results[name] = self._result("d" + name, out.get(name), rows, cols, given[1],
                                                      f"out[{name!r}]")
                alive.append(written)
                setattr(gradients, name, self._views["d" + name])
            for name in parameters:
                code = choice(ffi.typeof("atn_parameter"), name, "parameters")
                tensor, results[name] = self._parameter_gradient(name, code, out.get(name))
                gradients.parameters[code] = tensor
                alive.append(tensor)
            self.status = must(lib.atn_attention_backward(self._plan, self._inputs, self._views["dout"], gradients,
                                                          ffi.NULL), self._context)
            del alive, inputs
        return results

    def _parameter_gradient(self, name, code, given):
        parameter = lib.atn_attention_parameter(self._desc, code)
        tensor = ffi.new("atn_tensor *", parameter[0])
        source = next((a for a in self._keep if isinstance(a, np.ndarray)
                       and parameter.data and a.ctypes.data == int(ffi.cast("intptr_t", parameter.data))), None)
        if given is None and self.device != "cpu":
            raise ArgumentError(f"out[{name!r}]: none, but on CUDA it must be given")
        given = np.empty_like(source) if given is None and source is not None else given
        if given is not None:
            found, _ = interface(f"out[{name!r}]", given, self.device, self.stream)
            size = np.prod([parameter.batch, parameter.heads, parameter.rows, parameter.cols])
            if found["typestr"] != NUMPY[self._desc.dtype].str or np.prod(found["shape"]) != size or found["data"][1] \
                    or found.get("strides") is not None:
                raise ArgumentError(f"out[{name!r}]: expected {size} contiguous, writable numbers of the plan's type")
            tensor.data = ffi.cast("void *", found["data"][0])
        return tensor, given

    def outcome(self) -> Outcome:
        """Waits for the last call and says how it went, head by head where there are inverses. A residual is
        |B X B - B|_F / |B|_F of a head's matrix B and the X that was used (attnum/inverse.h)."""
        with self._lock:
            s = self._shape
            infos = ffi.new("atn_inverse_info[]", max(1, s.batch * s.heads))
            info = ffi.new("atn_attention_info *", {"inverses": infos})
            status = must(lib.atn_attention_outcome(self._plan, info), self._context)
        count = s.batch * s.heads if info.landmarks else 0
        return Outcome(status, info.landmarks, info.failures, [as_dict(infos[i]) for i in range(count)])

    @property
    def cost(self) -> dict[str, float]:
        """What a call costs: flops, exps, bytes, state_bytes, workspace_bytes, and backward_flops, backward_exps and
        backward_bytes (attnum/attention.h)."""
        cost = ffi.new("atn_cost *")
        with self._lock:
            must(lib.atn_attention_cost(self._context, self._desc, self._shape, cost), self._context)
        return as_dict(cost)

    def __repr__(self) -> str:
        s = self._shape
        return (f"<attnum.Plan {self.op}: {s.batch} x {s.heads} heads, {s.tokens} tokens of width {s.dim}, on "
                f"{self.device}>")


def attention(op: str, q: Any, k: Any = None, v: Any = None, *, out: Any = None, query_mask: Any = None,
              key_mask: Any = None, outcome: bool = False, layout: str = "bhnd", **options: Any) -> Any:
    """Y = attention(Q, K, V) in one call: a Plan for these arrays, and its call. Options are those of Plan; who calls
    more than once keeps a Plan. With outcome=True: (Y, Outcome).

        y = attnum.attention("soft", q, v=v, inverse="nr-paper",
                             sampling={"kind": "pool", "height": 28, "width": 28, "stride": 4})
        y = attnum.attention("softmax", q, k, v, causal=True)

    q, k, v: b x h x n x d, b x h x n_k x d (None: K = Q), b x h x n_k x d_v (or as layout says), float32 or float64, on
    the CPU (NumPy's, __dlpack__, __array_interface__) or in CUDA memory (__dlpack__, __cuda_array_interface__; with
    `out`)."""
    if query_mask is not None or key_mask is not None:
        options.setdefault("padding", True)
    if v is None:
        raise ArgumentError("v: none, expected an array")
    plan = Plan.of(op, q, k, v, layout=layout, **options)
    y = plan(q, k, v, out=out, query_mask=query_mask, key_mask=key_mask)
    return (y, plan.outcome()) if outcome else y
