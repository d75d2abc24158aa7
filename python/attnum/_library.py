# SPDX-License-Identifier: BSD-3-Clause
"""The binding of the library, its errors, and what turns Python's values into its descriptions and views."""
import ctypes
import math
import operator
import os
import re

import numpy as np

_UNLIKE_SONAME = {"liblapacke.so.3": "liblapacke"}  # where Debian's package is not named after its library


def missing_library(text):
    """A sentence on the library that the loader did not find, or None."""
    found = re.search(r"(\S+?\.so[.\d]*): cannot open shared object file", text)
    if not found:
        return None
    name, _, version = found[1].partition(".so.")
    # Debian's rule: libNAME.so.N is in the package libNAMEN, with a hyphen between two digits
    package = _UNLIKE_SONAME.get(found[1], name + ("-" if name[-1].isdigit() else "") + version)
    return f"attnum needs the system library {found[1]}, which is not installed; on Debian: apt install {package}"


try:
    from . import _binding
except ImportError as error:
    raise ImportError(missing_library(str(error)) or str(error)) from error
from . import _dlpack
from ._names import NAMES, Status

ffi, lib = _binding.ffi, _binding.lib

# Work is distributed by attnum itself: with one BLAS thread it is faster, and results do not depend on the number of
# threads (context.h). It is a setting of the whole process; who has made it is left alone.
_blas = ctypes.CDLL(_binding.__file__)
if "OPENBLAS_NUM_THREADS" not in os.environ and hasattr(_blas, "openblas_set_num_threads"):
    _blas.openblas_set_num_threads(1)


# ---- Errors ----

class Error(RuntimeError):
    """What the library refused to do, in its own words. `status` is the library's code."""

    def __init__(self, text, status=None):
        super().__init__(text)
        self.status = status


class ArgumentError(Error, ValueError):
    """An argument that does not fit; the sentence names it."""


class UnsupportedError(ArgumentError, NotImplementedError):
    """Something that an operator, a type or a device cannot do; the sentence says why."""


class OutOfMemoryError(Error, MemoryError):
    """The library found no memory."""


def members(ctype):
    """{value: enumerator} of an enumeration, without the counts at its end."""
    return {value: name for name, value in sorted(ctype.relements.items(), key=lambda item: item[1])
            if not name.endswith("_COUNT")}


_ERRORS = {Status.ERR_UNSUPPORTED: UnsupportedError, Status.ERR_MEMORY: OutOfMemoryError, Status.ERR_DEVICE: Error,
           Status.ERR_LIBRARY: Error}


def must(status, context, **names):
    """The Status of a call; an error is raised. `names` are those of arguments that the library's sentence calls
    otherwise."""
    if status < 0:
        detail = text(lib.atn_last_error(context)) or text(lib.atn_status_message(status))
        first = re.match(r"\w*", detail)[0]
        detail = names.get(first, first) + detail[len(first):]
        raise _ERRORS.get(status, ArgumentError)(detail, Status(status))
    return Status(status)


def text(pointer):
    return ffi.string(pointer).decode() if pointer else None


class Process:
    """How often this process is a fork's child. OpenMP's threads are the parent's alone, and GCC's runtime would wait
    for them forever (context.h): a child computes on one thread unless it is told otherwise."""
    forks = 0


def _count_fork():
    Process.forks += 1


os.register_at_fork(after_in_child=_count_fork)


class Context:
    """A context of the library: a device, its stream, threads, an instruction set. "cuda:1" is the second device."""

    def __init__(self, threads=0, isa="auto", device="cpu", stream=None):
        self._forks = Process.forks
        if threads == 0 and Process.forks:
            threads = 1
        options = ffi.new("atn_context_options *")
        kind, _, ordinal = device.partition(":") if isinstance(device, str) else (device, "", "")
        if ordinal and not ordinal.isdecimal():
            raise ArgumentError(f"device: {device!r}, expected cpu, cuda or cuda:N")
        # 1 is cudaStreamLegacy: the stream that other libraries use unless they are told otherwise
        self.device, self.stream = kind, (1 if kind == "cuda" else 0) if stream is None else stream
        fill(options, {"threads": threads, "isa": isa, "device": kind, "ordinal": int(ordinal or 0),
                       "stream": ffi.cast("void *", self.stream)}, None, None)
        pointer = ffi.new("atn_context **")
        status = lib.atn_context_create(options, pointer)
        if status < 0:  # without a context there is no detail: these say why
            reason = ffi.new("const char **")
            if lib.atn_device_count(options.device, reason):
                lib.atn_isa_choose(options.isa, ffi.NULL, reason)
            sentence = text(reason[0]) or text(lib.atn_status_message(status))
            raise _ERRORS.get(status, ArgumentError)(f"threads={threads}, isa={isa!r}, device={device!r}: {sentence}",
                                                     Status(status))
        self._context = pointer[0]

    def is_from_before_fork(self):
        return self._forks != Process.forks and lib.atn_context_threads(self._context) > 1

    def __del__(self, free=lib.atn_context_free):
        if hasattr(self, "_context"):
            free(self._context)


# ---- Choices ----

_LISTED = {code: name for rows in NAMES.values() for code, (name, _) in rows.items()}


def choices(ctype):
    """{name: value} of an enumeration: names of the library's lists, or what follows the prefix of all."""
    found = members(ctype)
    prefix = os.path.commonprefix([name.split("_") for name in found.values()])
    return {_LISTED.get(name, "-".join(name.split("_")[len(prefix):]).lower()): value for value, name in found.items()}


_CHOICES: dict[str, dict[str, int]] = {}


def choice(ctype, name, argument):
    """The value of a choice."""
    known = _CHOICES.setdefault(ctype.cname, choices(ctype))
    if not isinstance(name, str) or name not in known:
        raise ArgumentError(f"{argument}: {name!r}, expected one of {', '.join(known)}")
    return known[name]


def choice_name(ctype, value):
    return next((name for name, known in choices(ctype).items() if known == value), None)


# ---- Descriptions ----

# Arrays that are pointers in C, and the field that says how many entries they have.
_COUNTS = {"indices": "count", "uniforms": "uniform_count", "buckets": "rounds"}
# What the other fields of a description are when a method is chosen.
_DEFAULTS = {"atn_inverse_desc": lib.atn_inverse_defaults}


def fields_of(struct):
    kind = ffi.typeof(struct)
    return dict((kind.item if kind.kind == "pointer" else kind).fields)


def fill(struct, options, dtype, keep, place=""):
    """Sets the fields of a description by name. Tensors have this dtype; arrays are kept in the list `keep`, which must
    live as long as the description."""
    fields = fields_of(struct)
    for name, value in options.items():
        argument = place + name
        if name not in fields:
            raise ArgumentError(f"{argument}: no such option, expected one of {', '.join(fields)}")
        kind = fields[name].type
        if kind.kind == "enum":
            setattr(struct, name, choice(kind, value, argument))
        elif kind.cname == "atn_tensor":
            setattr(struct, name, parameter(argument, value, dtype, keep))
        elif kind.kind == "struct":
            fill_group(getattr(struct, name), kind, value, dtype, keep, argument)
        elif name in _COUNTS and kind.kind == "pointer":
            array = numbers(argument, value, {"int64_t": np.int64, "double": np.float64}[kind.item.cname])
            keep.append(array)
            setattr(struct, name, ffi.cast(kind, array.ctypes.data))
            count = array.shape[-2] if name == "buckets" and array.ndim > 1 else array.size
            if options.get(_COUNTS[name], count) != count:
                raise ArgumentError(f"{place}{_COUNTS[name]}: {options[_COUNTS[name]]}, but {argument} has {count}")
            setattr(struct, _COUNTS[name], count)
        else:
            try:
                if kind.kind == "primitive" and kind.cname not in ("float", "double"):
                    # cffi would take the integral part of an array's number
                    value = bool(value) if getattr(value, "dtype", None) == bool else operator.index(value)
                setattr(struct, name, value)
            except (TypeError, OverflowError) as error:
                expected = kind.cname.removeprefix("_").lower()
                raise ArgumentError(f"{argument}: {value!r}, expected {expected}") from error


def fill_group(struct, kind, value, dtype, keep, argument):
    """A description within another: a name, which is its first field, or a dict."""
    first = next(iter(fields_of(struct)))
    options = {first: value} if isinstance(value, str) else value
    if not isinstance(options, dict):
        raise ArgumentError(f"{argument}: {value!r}, expected a name or a dict of {', '.join(fields_of(struct))}")
    if first in options and kind.cname in _DEFAULTS:
        method = choice(fields_of(struct)[first].type, options[first], f"{argument}.{first}")
        ffi.memmove(ffi.addressof(struct), ffi.new(kind.cname + " *", _DEFAULTS[kind.cname](method)),
                    ffi.sizeof(kind))
    fill(struct, options, dtype, keep, argument + ".")


def numbers(argument, value, dtype):
    """A contiguous array of that type: value itself if it is one, so that its numbers are read at every call."""
    try:
        array = np.asarray(value)
        mask = array.dtype == bool and np.dtype(dtype).kind == "i"
        if mask or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"dtype {array.dtype}, expected {np.dtype(dtype)}")
        return np.ascontiguousarray(array, dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{argument}: {error}") from error


def parameter(argument, value, dtype, keep):
    """A dense view 1 x heads x rows x cols of an array with 2 to 4 dimensions; of four the last two are one."""
    array = numbers(argument, value, dtype)
    if not 2 <= array.ndim <= 4:
        raise ArgumentError(f"{argument}: {array.ndim} dimensions, expected 2 to 4")
    sizes = (1, *array.shape) if array.ndim == 3 else (1, 1, *array.shape)
    if array.ndim == 4:
        sizes = array.shape if array.shape[0] == 1 else (1, *array.shape[:2], array.shape[2] * array.shape[3])
    keep.append(array)
    return lib.atn_tensor_dense(ffi.cast("void *", array.ctypes.data), DTYPES[array.dtype.str], *sizes)


def as_dict(struct):
    """A structure that was filled in by the library, its choices by name."""
    values = {}
    for name, field in fields_of(struct).items():
        value = getattr(struct, name)
        values[name] = (Status(value) if field.type.cname == "atn_status" else
                        choice_name(field.type, value) if field.type.kind == "enum" else
                        text(value) if field.type.cname == "char *" else value)
    return values


# ---- Arrays ----

DTYPES = {"<f4": lib.ATN_F32, "<f8": lib.ATN_F64, "<f2": lib.ATN_F16}
NUMPY = {code: np.dtype(name) for name, code in DTYPES.items()}
INTERFACES = {"cpu": "__array_interface__", "cuda": "__cuda_array_interface__"}


def device_of(x):
    """"cpu", "cuda" or "cuda:N", where an array is."""
    if hasattr(x, "__dlpack_device__"):
        kind, ordinal = _dlpack.device_of(x)
        return "cpu" if kind != "cuda" else f"cuda:{ordinal}" if ordinal else "cuda"
    return "cuda" if hasattr(x, INTERFACES["cuda"]) else "cpu"


def interface(name, x, device="cpu", stream=None):
    """Address, shape, strides and type of an array in the device's memory, and what keeps it alive. Work on `stream`
    finds it as its owner's stream leaves it (None, -1: no matter)."""
    found, where = getattr(x, INTERFACES[device], None) if device == "cpu" else None, None
    if found is not None:
        return found, x
    if getattr(x, "is_neg", bool)():
        raise ArgumentError(f"{name}: a negated view, whose memory has the other sign: give resolve_neg() of it")
    if hasattr(x, "__dlpack__"):
        try:
            where, _ = _dlpack.device_of(x)
            if where == device:
                return _dlpack.take(x, stream if device == "cuda" else None)
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ArgumentError(f"{name}: {error}") from error
    elif hasattr(x, INTERFACES["cuda"]):
        where, found = "cuda", getattr(x, INTERFACES["cuda"])
        if device == "cuda":
            owners = found.get("stream")
            if owners is not None and stream not in (None, -1, owners):
                other = Context(device="cuda", stream=owners)
                must(lib.atn_synchronise(other._context), other._context)
            return found, x
    place = "" if where is None else f" in memory of {where}"
    raise ArgumentError(f"{name}: {type(x).__name__}{place}, expected an array in memory of {device}, with "
                        f"{INTERFACES[device]} or __dlpack__")


def set_view(tensor, name, x, writable=False, device="cpu", layout="bhnd", stream=None):
    """Lets an atn_tensor show an array n x d, h x n x d or b x h x n x d (layout "bnhd": n x h x d, b x n x h x d),
    without a copy: the last dimension must be contiguous, strides are multiples of the element's size. Returns what
    keeps the memory alive, and the number of dimensions."""
    found, owner = interface(name, x, device, stream)
    shape, strides, typestr = tuple(found["shape"]), found.get("strides"), found["typestr"]
    if typestr not in DTYPES:
        raise ArgumentError(f"{name}: dtype {np.dtype(typestr)}, expected float32 or float64")
    if not 2 <= len(shape) <= 4:
        raise ArgumentError(f"{name}: {len(shape)} dimensions, expected n x d, h x n x d or b x h x n x d")
    address, read_only = found["data"]
    if writable and read_only:
        raise ArgumentError(f"{name}: read-only memory")
    size, missing = int(typestr[2:]), 4 - len(shape)
    if strides is None:
        strides = tuple(size * math.prod(shape[i + 1:]) for i in range(len(shape)))
    if (shape[-1] > 1 and strides[-1] != size) or any(s % size for s in strides):
        raise ArgumentError(f"{name}: strides {strides} in bytes, expected the last dimension to be contiguous")
    batch, heads, rows, cols = (1,) * missing + shape
    batch_stride, head_stride, row_stride, _ = (0,) * missing + tuple(s // size for s in strides)
    if layout == "bnhd" and len(shape) > 2:
        heads, rows, head_stride, row_stride = rows, heads, row_stride, head_stride
    tensor.data = ffi.cast("void *", address)
    tensor.dtype = DTYPES[typestr]
    tensor.batch, tensor.heads, tensor.rows, tensor.cols = batch, heads, rows, cols
    tensor.row_stride, tensor.head_stride, tensor.batch_stride = row_stride, head_stride, batch_stride
    return owner, len(shape)
