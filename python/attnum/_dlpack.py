# SPDX-License-Identifier: BSD-3-Clause
"""Memory that an object shows by the protocol DLPack, on the CPU and on CUDA devices."""
import ctypes
import math

import cffi

_ffi = cffi.FFI()
_ffi.cdef("""
struct array {
    void *data; int32_t device, ordinal, dimensions; uint8_t kind, bits; uint16_t lanes;
    int64_t *shape, *strides; uint64_t offset;
};
struct managed { struct array array; void *manager; void (*release)(struct managed *); };
struct versioned {
    uint32_t major, minor; void *manager; void (*release)(struct versioned *); uint64_t flags; struct array array;
};
""")
# Names of a capsule: as it comes, and as who has taken the memory leaves it. Python keeps the pointers.
_NAMES = {b"dltensor_versioned": ("struct versioned *", ctypes.c_char_p(b"used_dltensor_versioned")),
          b"dltensor": ("struct managed *", ctypes.c_char_p(b"used_dltensor"))}
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # as NumPy calls them; bfloat16 is 4
_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 13: "cuda"}  # 3: pinned memory of the host, 13: managed memory
_READ_ONLY, _COPIED = 1, 2

_capsule = ctypes.pythonapi
_capsule.PyCapsule_GetPointer.restype = ctypes.c_void_p
_capsule.PyCapsule_GetPointer.argtypes = _capsule.PyCapsule_IsValid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_capsule.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)


class Taken:
    """Memory that its owner keeps until this object goes."""

    def __init__(self, managed):
        self._managed = managed

    def __del__(self):
        if self._managed.release:
            self._managed.release(self._managed)


def device_of(x):
    """(device, ordinal) of what has __dlpack_device__: "cpu", "cuda", or "device N", the protocol's number."""
    kind, ordinal = x.__dlpack_device__()
    return _DEVICES.get(int(kind), f"device {int(kind)}"), int(ordinal)


def take(x, stream=None):
    """What __array_interface__ would say of x, and what keeps the memory. On CUDA its owner sees to it that work on
    `stream`, from now on, finds the memory as it is to be (-1: no matter). Raises what the owner raises, ValueError
    for memory that no interface could describe."""
    options = {} if stream is None else {"stream": stream}
    try:
        capsule = x.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # the protocol before version 1
        capsule = x.__dlpack__(**options)
    name = next((name for name in _NAMES if _capsule.PyCapsule_IsValid(capsule, name)), None)
    if name is None:
        raise ValueError("__dlpack__ gave no capsule of DLPack's")
    kind, used = _NAMES[name]
    managed = _ffi.cast(kind, _capsule.PyCapsule_GetPointer(capsule, name))
    _capsule.PyCapsule_SetName(capsule, used)
    taken, flags = Taken(managed), 0
    if name == b"dltensor_versioned":
        if managed.major > 1:
            raise ValueError(f"DLPack {managed.major}.{managed.minor}, expected 1")
        flags = managed.flags
    array = managed.array
    if array.kind not in _KINDS or array.lanes != 1 or array.bits % 8:
        raise ValueError(f"dtype {'bfloat' if array.kind == 4 else f'{array.kind}:'}{array.bits}"
                         f"{'' if array.lanes == 1 else f' x {array.lanes}'}, expected float32 or float64")
    size = array.bits // 8
    shape = tuple(array.shape[i] for i in range(array.dimensions))
    strides = None if not array.strides else tuple(size * array.strides[i] for i in range(array.dimensions))
    if strides and all(count == 1 or stride == size * math.prod(shape[i + 1:])
                       for i, (count, stride) in enumerate(zip(shape, strides))):
        strides = None  # dense, as the interfaces say it; PyTorch always gives strides
    address = int(_ffi.cast("intptr_t", array.data)) + array.offset
    return {"shape": shape, "strides": strides,
            "typestr": f"{'|' if size == 1 else '<'}{_KINDS[array.kind]}{size}",
            "data": (address, bool(flags & (_READ_ONLY | _COPIED)))}, taken
