#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares times of attnum's operators with their published form in PyTorch, and of softmax with PyTorch's fused call
(torch_operators.py has the forms): in one process, on the same tokens and parameters in the same memory,
on as many threads, by turns (A B A B ...). Optional: nothing in the build or the tests needs PyTorch.

    attnum bench --emit-tokens tokens --operator soft --n 3136,12544 --batch 8
    python3 bench/peers/torch_peers.py tokens --threads 1,2 --out peers.csv

and, for the n from which soft is faster than softmax through the fused call:

    attnum bench --emit-tokens lengths --operator soft --n 196:12544:x2 --batch 2
    python3 bench/peers/torch_peers.py lengths --operator soft --threads 1,2 --out crossover.csv

Each form is first compared with attnum's output in f64 on the first sequence; one that computes something
else is not timed, and nothing is where attnum itself has lost digits in the type that is timed. Forms that
torch.compile makes are compiled in f64 for that, then, for each number of threads, in the type that is timed, where
they may differ from their plain form by rounding alone. All this is done before the first repeat, for one shape, and
takes seconds for each; a compilation within the repeats is an error.

A repeat is one call, the cache flushed before it, or as many in a row as take 5 ms. Ratios are those of
neighbours, PyTorch's time over attnum's. Operators that look at all pairs of tokens take fewer sequences and heads
where --pairs says so. PyTorch 2.6 or later."""
import argparse
import csv
import os
import pathlib
import re
import subprocess
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's would start its own threads
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no processes that wait for more to compile

import numpy
import torch

import attnum
import torch_operators
import turns

COLUMNS = {
    "work": "forward, or training: forward and backward",
    "operator": "attnum's name",
    "variant": "of the operator",
    "form": "attnum; torch-eager, -lean, -fused; by torch.compile: torch-compiled, -lean-compiled, -fused-compiled; "
            "torch-softmax-fused: another operator, compared with soft",
    "dtype": "of all arrays",
    "batch": "sequences in a call",
    "heads": "of each sequence",
    "n": "tokens of a sequence",
    "m": "landmarks, or rows of linformer's projections",
    "d": "channels of a head",
    "device": "cpu or cuda",
    "device_name": "as it says itself",
    "threads": "of both",
    "repeats": "of each form, by turns",
    "calls": "in a repeat",
    "seconds": "s: of one call, median of the repeats",
    "seconds_low": "s: lower quartile",
    "seconds_high": "s: upper quartile",
    "cpu_seconds": "s: of all threads' processor time for a call, median: what counts on a busy machine",
    "ratio": "the form's seconds over those of attnum just before: median",
    "ratio_low": "lower quartile",
    "ratio_high": "upper quartile",
    "error": "|Y - Y64| / |Y64|, Y64 attnum's in f64, on the first sequence",
    "formula_error": "the same of the form in f64; one that is another formula has no time",
    "foreign_share": "of the machine's time, taken by other processes meanwhile",
    "steal_share": "taken by other machines",
    "dirty": "yes: more than a fiftieth was, also when repeated",
    "commit": "of attnum's sources",
    "blas": "OpenBLAS's version and kernels, which attnum calls",
    "torch": "version of PyTorch",
}
DTYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
          "f64": torch.float64}
# Rounding in f64 is magnified by up to 2^20 (20 Newton steps) times a condition number; another formula
# differs in the first digits.
SAME_FORMULA = 1e-5
# Another order of the same operations costs less than two digits of those that the plain form has.
SAME_ROUNDING = 100


# ---- The machine ----

def cache_bytes():
    """Of the last level; 32 MiB where it is not known."""
    try:
        text = max(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")).read_text()
        return int(text.strip().rstrip("K")) << 10
    except (OSError, ValueError):
        return 32 << 20


def device_name(device):
    return torch.cuda.get_device_name() if device == "cuda" else turns.processor()


def commit():
    """The commit, with -dirty if anything but results and texts was changed since."""
    def git(*words):
        return subprocess.run(["git", "-C", str(pathlib.Path(__file__).parent), *words], capture_output=True, text=True)

    name = git("describe", "--always", "--match", "").stdout.strip()
    changed = git("diff", "--quiet", "HEAD", "--", ":/", ":(top,exclude)data", ":(top,exclude)*.md").returncode
    return name + ("-dirty" if changed else "") if name else "unknown"


class Clock:
    """Seconds of calls in a row, and of the processors', after a copy of twice the cache: a clock on the CPU,
    events on CUDA."""

    def __init__(self, device):
        self.cuda = device == "cuda"
        size = torch.cuda.get_device_properties(0).L2_cache_size if self.cuda else cache_bytes()
        self.source, self.target = (torch.ones(2 * size // 4, device=device) for _ in range(2))
        self.marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if self.cuda else None

    def time(self, work, calls):
        self.target.copy_(self.source)
        if self.cuda:
            self.marks[0].record()
        start, processors = time.perf_counter(), time.process_time()
        for _ in range(calls):
            work()
        seconds, processors = time.perf_counter() - start, time.process_time() - processors
        if self.cuda:
            self.marks[1].record()
            self.marks[1].synchronize()
            seconds = self.marks[0].elapsed_time(self.marks[1]) / 1e3
        return seconds / calls, processors / calls


# ---- A case ----

class Case:
    """An operator on given tokens: attnum and the forms of PyTorch as functions without arguments."""

    def __init__(self, library, operator, tokens, dtype, options, threads, device):
        self.operator, self.dtype, self.device = operator, dtype, device
        self.shape = tuple(tokens["q"].shape)
        typed = DTYPES[dtype]
        generator = torch.Generator().manual_seed(1)
        parameters = operator.make(generator, self.shape, options.m)
        self.parameters = {key: value.to(tokens["q"].dtype).to(typed).to(device)
                           for key, value in parameters.items()}
        if operator.landmarks:
            self.parameters["m"] = options.m
        names = "qv" if operator.shared else "qkv"
        self.tokens = {key: tokens[key].to(typed).to(device).contiguous() for key in names}
        self.tokens.setdefault("k", None)
        self.dy = tokens["k"].to(typed).to(device).contiguous()
        self.outputs = {key: torch.empty_like(value) for key, value in self.tokens.items()
                        if value is not None}
        self.y = torch.empty_like(self.dy)
        stream = torch.cuda.current_stream().cuda_stream if device == "cuda" else None
        self.context = library.context(threads, device, stream)
        self.plan = self.context.plan(operator.describe(library, dtype, self.shape, self.parameters),
                                      self.shape)

    def close(self):
        self.plan.close()
        self.context.close()

    def attnum(self, work):
        def address(tensor):
            return None if tensor is None else tensor.data_ptr()
        inputs = [address(self.tokens[key]) for key in "qkv"]
        forward = self.plan.forward(*inputs, self.y.data_ptr())
        if work == "forward":
            return forward
        backward = self.plan.backward(*inputs, self.dy.data_ptr(),
                                      *(address(self.outputs.get(key)) for key in "qkv"), y=self.y.data_ptr())

        def training():
            forward()
            backward()
        return training

    def torch(self, work, form):
        q, k, v = (self.tokens[key] for key in "qkv")
        if work == "forward":
            def forward():
                with torch.no_grad():
                    return form(q, q if k is None else k, v, self.parameters)
            return forward
        leaves = {key: value.detach().requires_grad_() for key, value in self.tokens.items()
                  if value is not None}

        def training():
            y = form(leaves["q"], leaves.get("k", leaves["q"]), leaves["v"], self.parameters)
            return y, dict(zip(leaves, torch.autograd.grad(y, list(leaves.values()), self.dy)))
        return training

    def results(self, work, form=None):
        """Output and gradients, on the first sequence, in f64: attnum's, or those of a form."""
        if form is None:
            self.attnum(work)()
            y, gradients = self.y, self.outputs if work == "training" else {}
        elif work == "forward":
            y, gradients = self.torch(work, form)(), {}
        else:
            y, gradients = self.torch(work, form)()
        return [x[:1].detach().double().cpu() for x in (y, *gradients.values())]


def distance(got, want):
    """The largest relative error of the output and the gradients; NaN if any is NaN."""
    errors = [((a - b).norm() / b.norm()).item() for a, b in zip(got, want)]
    return max(errors, key=lambda error: (error != error, error))


def compiled_name(name):
    return "compiled" if name == "eager" else name + "-compiled"


def forms_of(operator, compiled):
    """Its forms by their names, the plain ones first."""
    forms = dict(operator.forms)
    if compiled:
        torch._dynamo.reset()  # what was compiled for other shapes
        torch._dynamo.config.fail_on_recompile_limit_hit = True  # instead of eager in its place
        forms.update((compiled_name(name), torch.compile(form, dynamic=False)) for name, form in operator.forms.items())
    return forms


def errors_of(case, work, forms, want):
    """How far the results of each form are from those wanted; without a compiled form that fails, which is said."""
    errors = {}
    for name, form in forms.items():
        try:
            errors[name] = distance(case.results(work, form), want)
        except Exception as error:  # of the compiler, which has many kinds, or of what it made
            if name in case.operator.forms:
                raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            print(f"{case.operator.name} {case.dtype} {work} n={case.shape[2]}: torch-{name} fails and is not timed: "
                  f"{reason}", file=sys.stderr)
    return errors


def formula_errors(library, operator, tokens, options, work, device):
    """Attnum's results in f64 on the first sequence, and how far each form's are from them."""
    first = {key: value[:1] for key, value in tokens.items()}
    case = Case(library, operator, first, "f64", options, max(options.threads), device)
    want = case.results(work)
    errors = errors_of(case, work, forms_of(operator, options.compiled), want)
    case.close()
    return want, errors


def rounds_alike(name, errors, operator):
    """Whether a compiled form is as good as its plain one, in the type that is timed."""
    plain = next((plain for plain in operator.forms if compiled_name(plain) == name), name)
    return errors[name] <= SAME_ROUNDING * errors[plain]


def is_right(errors, operator):
    """Whether attnum is as good as the plain forms that are the same formula, in the type that is timed."""
    plain = [errors[name] for name in operator.forms if name in errors and errors[name] == errors[name]]
    return errors["attnum"] <= SAME_ROUNDING * max(plain, default=float("inf"))


def timed_rows(clock, case, work, want, formulas, options):
    """Rows of attnum, of the forms that are the same formula, and of the rivals; those of other forms have no time,
    and if attnum is wrong in the type that is timed there is only its row, without a time."""
    forms = {name: form for name, form in forms_of(case.operator, options.compiled).items() if name in formulas}
    errors = errors_of(case, work, {name: form for name, form in forms.items() if formulas[name] <= SAME_FORMULA}, want)
    same = {name: forms[name] for name in errors if rounds_alike(name, errors, case.operator)}
    errors["attnum"] = distance(case.results(work), want)
    if not is_right(errors, case.operator):
        yield {"form": "attnum", "error": errors["attnum"]}
        return
    timed = {**same, **case.operator.rivals}
    works = [case.attnum(work)] + [case.torch(work, form) for form in timed.values()]
    with torch.compiler.set_stance("fail_on_recompile"):
        times, calls, machine = turns.measure(clock, works, options.seconds)
    for row in turns.rows_of(["attnum", *timed], times, calls):
        name = row["form"]
        yield {**row, **machine, "error": errors.get(name, ""), "formula_error": formulas.get(name, "")}
    for name, error in formulas.items():
        if not error <= SAME_FORMULA or (name in errors and name not in same):
            yield {"form": name, "error": errors.get(name, ""), "formula_error": error}


def run_case(library, clock, operator, tokens, dtype, work, options):
    """Rows for each number of threads."""
    want, formulas = formula_errors(library, operator, tokens, options, work, options.device)
    for threads in options.threads:
        torch.set_num_threads(threads)
        case = Case(library, operator, tokens, dtype, options, threads, options.device)
        b, h, n, d = case.shape
        same = {"work": work, "operator": operator.name, "variant": operator.variant, "dtype": dtype,
                "batch": b, "heads": h, "n": n, "m": case.parameters.get("m", ""), "d": d, "threads": threads}
        try:
            for row in timed_rows(clock, case, work, want, formulas, options):
                yield {**same, **row, "form": row["form"] if row["form"] == "attnum" else "torch-" + row["form"]}
        finally:
            case.close()


def fewer(tokens, operator, pairs):
    """The first sequences and heads, so many that pairs of tokens stay below `pairs`."""
    b, h, n, d = tokens["q"].shape
    if operator.pairs:
        b = max(1, min(b, pairs // (h * n * n)))
        h = max(1, min(h, pairs // (b * n * n)))
    return {key: value[:b, :h] for key, value in tokens.items()}


def read_tokens(folder):
    """Those of each file that `attnum bench --emit-tokens` wrote, by the number of tokens."""
    pattern = re.compile(r"tokens_b(\d+)_h\d+_n(\d+)_d\d+_q\.npy")
    paths = [(int(m[2]), int(m[1]), path) for path in folder.glob("*_q.npy") if (m := pattern.fullmatch(path.name))]
    for _, _, path in sorted(paths):
        yield {key: torch.from_numpy(numpy.load(str(path).replace("_q.npy", f"_{key}.npy"))) for key in "qkv"}


def all_rows(library, options):
    """On CUDA both use one stream, which the default one cannot be: attnum would take its own."""
    if options.device == "cuda":
        torch.cuda.set_stream(torch.cuda.Stream())
    clock = Clock(options.device)
    for tokens in read_tokens(options.folder):
        n = tokens["q"].shape[2]
        for operator in torch_operators.OPERATORS:
            if (options.operator and operator.name not in options.operator) or not operator.fits(n, options.m):
                continue
            for dtype in options.dtype:
                torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
                for work in options.work:
                    some = {key: value.to(DTYPES[dtype])
                            for key, value in fewer(tokens, operator, options.pairs).items()}
                    try:
                        yield from run_case(library, clock, operator, some, dtype, work, options)
                    except (RuntimeError, attnum.Error) as error:  # out of memory, or not for this type
                        print(f"{operator.name} {dtype} {work} n={n} left out: {error}", file=sys.stderr)


def written(row):
    return {key: repr(value) if isinstance(value, float) else value for key, value in row.items()}


def show(row):
    seconds = f"{row['seconds'] * 1e3:10.3f} ms" if "seconds" in row else "not timed"
    ratio = f"{row['ratio']:8.2f} x" if "ratio" in row else " " * 10
    error = f"error {row['error']:.1g}" if row.get("error", "") != "" else ""
    print(f"{row['work']:9}{row['operator']:14}{row['dtype']:5}{row['form']:20} b={row['batch']} h={row['heads']} "
          f"n={row['n']:<6} threads={row['threads']} {seconds} {ratio} {error}"
          f"{' dirty' if row.get('dirty') == 'yes' else ''}", flush=True)


def show_crossovers(rows):
    cases = {}
    for row in rows:
        if row["operator"] == "soft":
            cases.setdefault((row["work"], row["dtype"], row["threads"]), []).append(row)
    for (work, dtype, threads), some in cases.items():
        n = turns.crossover(some, "torch-softmax-fused")
        print(f"{work} {dtype} threads={threads}: soft is faster than PyTorch's fused softmax " +
              (f"from n = {n} on" if n else "at no n timed here"))


def listed(kind):
    return lambda text: [kind(item) for item in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="columns of the CSV\n" + "".join(
                                         f"  {name:16}{text}\n" for name, text in COLUMNS.items()))
    parser.add_argument("folder", type=pathlib.Path, help="what attnum bench --emit-tokens wrote")
    parser.add_argument("--operator", type=listed(str), help="LIST of names (default: all)")
    parser.add_argument("--threads", type=listed(int), default=[1], help="LIST of numbers (default 1)")
    parser.add_argument("--dtype", type=listed(str), help="LIST (default f32; on cuda f32,tf32,bf16,f16)")
    parser.add_argument("--work", type=listed(str), default=["forward"],
                        help="LIST of forward, training (default forward)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--m", type=int, default=49, help="landmarks (default 49)")
    parser.add_argument("--pairs", type=int, default=200_000_000, help="most pairs of tokens in a call")
    parser.add_argument("--seconds", type=float, default=1, help="for each form of a case (default 1)")
    parser.add_argument("--no-compiled", dest="compiled", action="store_false", help="leave torch.compile's forms out")
    parser.add_argument("--library", dest="lib", type=pathlib.Path, metavar="FILE",
                        help="default: build/lib/libattnum.so of this tree",
                        default=attnum.HEADERS.parent / "build/lib/libattnum.so")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("peers.csv"))
    options = parser.parse_args()
    options.dtype = options.dtype or (["f32", "tf32", "bf16", "f16"] if options.device == "cuda" else ["f32"])
    return options


def main():
    options = parse()
    try:
        library = attnum.Library(options.lib)
    except (attnum.Error, FileNotFoundError) as error:  # no library, no compiler
        print(f"torch_peers: {error}", file=sys.stderr)
        return 3
    same = {"device": options.device, "device_name": device_name(options.device), "commit": commit(),
            "blas": library.blas(), "torch": torch.__version__}
    temporary, rows = options.out.with_name(options.out.name + ".new"), []
    with open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for row in all_rows(library, options):
            writer.writerow(written({**same, **row}))
            file.flush()  # so that a run that is stopped has left what it timed
            rows.append(row)
            show(row)
    if not rows:
        temporary.unlink()
        print(f"torch_peers: {options.folder}: nothing to time; attnum bench --emit-tokens writes tokens",
              file=sys.stderr)
        return 3
    temporary.rename(options.out)
    show_crossovers(rows)
    return 0 if all("seconds" in row for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
