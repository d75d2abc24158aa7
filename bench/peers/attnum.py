# SPDX-License-Identifier: BSD-3-Clause
"""attnum's C interface in Python, by ctypes: enough to plan an operator and to call it on memory that
somebody else owns, a PyTorch tensor's for instance.

Nothing of the interface is written down twice: structures and enumerations are read from the headers
behind the C preprocessor, and the compiler then confirms the size of every structure and the place of
every field. Needs a C compiler (`cc`, or $CC) and the library; no Python package.

    library = Library("build/lib/libattnum.so")
    context = library.context(threads=2)
    desc = library.variant("soft", "paper", "f32")
    desc.sampling.kind, desc.sampling.stride = library.constants["ATN_SAMPLING_WINDOW"], 64
    plan = context.plan(desc, (1, 2, 3136, 32))
    plan.forward(q, None, v, y)()                        # addresses: dense 1 x 2 x 3136 x 32"""
import ctypes
import os
import pathlib
import re
import shlex
import subprocess

HEADERS = pathlib.Path(__file__).resolve().parents[2] / "lib"
SOURCE = "#include <attnum/attention.h>\n#include <attnum/timing.h>\n"
PLAIN = {"int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "int": ctypes.c_int,
         "unsigned": ctypes.c_uint, "double": ctypes.c_double, "bool": ctypes.c_bool,
         "_Bool": ctypes.c_bool, "char": ctypes.c_char}


class Error(Exception):
    """What the library says about a call that failed, or why it cannot be called."""


def compiler(arguments, text):
    command = [*shlex.split(os.environ.get("CC", "cc")), "-I", str(HEADERS), "-x", "c", *arguments, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise Error(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def read_constants(text):
    """Every enumerator of a name ATN_...; values are numbers, shifts of them, or the one before and 1."""
    constants = {}
    for body in re.findall(r"enum\s*\{([^{}]*)\}", text):
        value = -1
        for entry in filter(None, map(str.strip, body.split(","))):
            name, _, given = map(str.strip, entry.partition("="))
            if not name.startswith("ATN_"):
                break
            left, _, right = given.partition("<<")
            value = constants.get(given, value + 1) if not re.match(r"-?\d", given) else \
                int(left) << int(right or 0)
            constants[name] = value
    return constants


def read_fields(body, types, constants):
    """Name and type of every field; pointers are addresses, but for texts."""
    body = re.sub(r"[\w ]+\*?\(\*(\w+)\)\([^()]*\)", r"void *\1", body)  # pointers to functions
    for declaration in filter(None, map(str.strip, body.split(";"))):
        words = re.match(r"(?:const |unsigned (?=char))*(\w+)\s*(.*)", " ".join(declaration.split()))
        base, names = words.groups()
        for name in names.split(","):
            stars, name, count = re.match(r"\s*(\**)(?:const )?\s*(\w+)(?:\[(\w+)\])?", name).groups()
            text = base == "char" and "unsigned" not in declaration
            kind = types[base] if not stars else ctypes.c_char_p if text else ctypes.c_void_p
            if count:
                kind = kind * int(constants.get(count, count))
            yield name, kind


def read_types(text, constants):
    types = dict(PLAIN)
    for kind, body, name in re.findall(r"typedef\s+(struct|enum)\s*\{([^{}]*)\}\s*(atn_\w+);", text):
        types[name] = ctypes.c_int if kind == "enum" else type(
            name, (ctypes.Structure,), {"_fields_": list(read_fields(body, types, constants))})
    return types


def assertions(types):
    """C that compiles only if each structure is laid out as here."""
    yield SOURCE + "#include <stddef.h>\n"
    for name, kind in types.items():
        if issubclass(kind, ctypes.Structure):
            yield f'_Static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "");\n'
            for field, *_ in kind._fields_:
                place = getattr(kind, field)
                yield f'_Static_assert(offsetof({name}, {field}) == {place.offset}, "");\n'
                yield f'_Static_assert(sizeof((({name} *)0)->{field}) == {place.size}, "");\n'


class Library:
    def __init__(self, path):
        text = compiler(["-E", "-P"], SOURCE)
        self.constants = read_constants(text)
        self.types = read_types(text, self.constants)
        compiler(["-fsyntax-only"], "".join(assertions(self.types)))
        try:
            self.calls = ctypes.CDLL(str(path))
        except OSError as error:
            raise Error(str(error)) from error
        for name in ("atn_last_error", "atn_status_message"):
            getattr(self.calls, name).restype = ctypes.c_char_p
        self.calls.atn_attention_variant.restype = self.types["atn_attention_desc"]
        self.calls.atn_operator_get.restype = ctypes.POINTER(self.types["atn_operator_info"])
        if self.has_openblas():  # context.h says why
            self.calls.openblas_set_num_threads(1)

    def has_openblas(self):
        return hasattr(self.calls, "openblas_set_num_threads")

    def blas(self):
        if not self.has_openblas():
            return ""
        self.calls.openblas_get_config.restype = ctypes.c_char_p
        return self.calls.openblas_get_config().decode().strip()

    def operators(self):
        """Each operator's name and those of its variants; the first is the default."""
        for op in range(self.constants["ATN_OPERATOR_COUNT"]):
            info = self.calls.atn_operator_get(op).contents
            rows = ctypes.cast(info.variants, ctypes.POINTER(self.types["atn_variant"]))
            yield info.name.decode(), [rows[i].name.decode() for i in range(info.variant_count)]

    def dtype(self, name):
        return self.constants["ATN_" + name.upper()]

    def variant(self, operator, variant, dtype):
        for op, (name, variants) in enumerate(self.operators()):
            if name == operator:
                return self.calls.atn_attention_variant(op, variants.index(variant), self.dtype(dtype))
        raise Error(f"{operator}: no such operator")

    def tensor(self, address, dtype, *shape):
        """Dense memory, as atn_tensor_dense describes it."""
        batch, heads, rows, cols = shape
        return self.types["atn_tensor"](
            data=address, dtype=self.dtype(dtype), batch=batch, heads=heads, rows=rows, cols=cols,
            batch_stride=heads * rows * cols, head_stride=rows * cols, row_stride=cols)

    def context(self, threads=0, device="cpu", stream=None):
        return Context(self, threads, device, stream)


class Context:
    def __init__(self, library, threads, device, stream):
        self.lib, self.pointer = library, ctypes.c_void_p()
        options = library.types["atn_context_options"](
            device=library.constants["ATN_" + device.upper()], stream=stream, threads=threads)
        self.must(library.calls.atn_context_create(ctypes.byref(options), ctypes.byref(self.pointer)))

    def must(self, status):
        """Below 0: a mistake, or the machine's fault. Above: said of the numbers, which then are there."""
        if status < 0:
            calls = self.lib.calls
            raise Error(f"{calls.atn_status_message(status).decode()}: "
                        f"{calls.atn_last_error(self.pointer).decode()}")
        return status

    def plan(self, desc, shape):
        return Plan(self, desc, shape)

    def close(self):
        self.lib.calls.atn_context_free(self.pointer)


class Plan:
    """An operator on q, k, v of batch x heads x n x d, dense; k None: K = Q."""

    def __init__(self, context, desc, shape):
        self.context, self.shape, self.pointer = context, shape, ctypes.c_void_p()
        self.types, self.calls = context.lib.types, context.lib.calls
        self.dtype = ("f32", "f64", "tf32", "bf16", "f16")[desc.dtype]
        sizes = self.types["atn_attention_shape"](*shape, shape[-1], 0)
        context.must(self.calls.atn_attention_plan(context.pointer, ctypes.byref(desc), ctypes.byref(sizes),
                                                   ctypes.byref(self.pointer)))

    def view(self, address):
        return None if address is None else self.context.lib.tensor(address, self.dtype, *self.shape)

    def group(self, name, *addresses):
        """A structure of pointers to tensors, and the tensors, which must live as long."""
        views = [self.view(address) for address in addresses]
        pointers = {key: view and ctypes.addressof(view) for key, view in zip("qkv", views)}
        return self.types[name](**pointers), views

    def ready(self, call, inputs, tensor, *outputs):
        """The call as a function without arguments, which builds nothing."""
        arguments = (self.pointer, ctypes.byref(inputs[0]), ctypes.byref(tensor),
                     *(ctypes.byref(output[0]) for output in outputs), None)
        kept = inputs, tensor, outputs
        return lambda must=self.context.must, kept=kept: must(call(*arguments))

    def forward(self, q, k, v, y):
        """A function that computes y and returns the status."""
        return self.ready(self.calls.atn_attention_forward, self.group("atn_attention_inputs", q, k, v),
                          self.view(y))

    def backward(self, q, k, v, dy, dq, dk, dv, y=None):
        """y: the last call was forward, on the same numbers, and wrote y; its intermediate results are used again."""
        gradients, output = self.group("atn_gradients", dq, dk, dv), self.view(y)
        if y is not None:
            gradients[0].after_forward, gradients[0].y = True, ctypes.addressof(output)
        gradients[1].append(output)
        return self.ready(self.calls.atn_attention_backward, self.group("atn_attention_inputs", q, k, v),
                          self.view(dy), gradients)

    def close(self):
        self.calls.atn_plan_free(self.pointer)
