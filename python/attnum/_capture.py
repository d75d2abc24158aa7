# SPDX-License-Identifier: BSD-3-Clause
"""Tokens of the attention layers of a PyTorch model (attnum.torch.capture)."""
from __future__ import annotations

import html as page_text
import json
import math
import os
import pathlib
import re
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from . import _program
from ._library import ArgumentError

# What models call the parameters that they put before the tokens of an image: timm, transformers, torchvision.
_CLASS_TOKENS = re.compile(r"(^|\.)((cls|class|dist|distillation|reg|register)_tokens?|class_embedding)$")


class Layer(NamedTuple):
    """What one call of attention was given, as float32: q, b x h x n x d, k, b x h x n_k x d, v, b x h x n_k x d_v.
    `name` is the module's (a later call's has .2, .3, ... after it); the first `class_tokens` of q are not of the
    grid."""

    name: str
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    class_tokens: int


def _kept(x):
    """b x h x n x d on the CPU: leading dimensions that are missing are 1, those that are more go into the batch."""
    x = x.detach().to("cpu", torch.float32)
    x = x[(None,) * (4 - x.ndim)] if x.ndim < 4 else x.reshape(-1, *x.shape[-3:])
    return x.contiguous().numpy().copy()


def _projected(query, key, value, embed_dim, heads, in_proj_weight, in_proj_bias, bias_k=None, bias_v=None,
               add_zero_attn=False, *rest, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,
               v_proj_weight=None, **others):
    """Q, K and V of torch.nn.functional.multi_head_attention_forward, whose arguments are n x b x E or n x E. bias_k and
    bias_v are one more row of K and V, and add_zero_attn adds a row of zeros to both."""
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight.chunk(3)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    for i, (x, weight, bias, row) in enumerate(zip((query, key, value), weights, biases, (None, bias_k, bias_v))):
        y = functional.linear(x, weight, bias)
        y = y[:, None] if y.ndim == 2 else y
        y = y if row is None else torch.cat([y, row.expand(1, y.shape[1], -1)])
        y = torch.cat([y, torch.zeros_like(y[:1])]) if i > 0 and add_zero_attn else y
        yield y.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)


class Capture(TorchFunctionMode):
    """What capture(model) gives: `layers`, a list of Layer, filled as the model runs."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model
        self.layers: list[Layer] = []
        self._running, self._undo = [""], list[Callable[[], None]]()
        self._class_tokens = sum(x.shape[-2] if x.ndim > 1 else 1 for name, x in model.named_parameters()
                                 if _CLASS_TOKENS.search(name))

    # ---- While the model runs ----

    def __enter__(self):
        for name, module in self.model.named_modules():
            self._undo += [module.register_forward_pre_hook(self._starts(name)).remove,
                           module.register_forward_hook(self._ends, always_call=True).remove]
            # timm and transformers: the form of attention that calls scaled_dot_product_attention
            if getattr(module, "fused_attn", None) is False:
                self._set(module, "fused_attn", True)
            if getattr(getattr(module, "config", None), "_attn_implementation", "sdpa") not in ("sdpa", None):
                self._set(module.config, "_attn_implementation", "sdpa")
        return super().__enter__()

    def __exit__(self, *error):
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        super().__exit__(*error)

    def _set(self, owner, name, value):
        self._undo.append(lambda old=getattr(owner, name): setattr(owner, name, old))
        setattr(owner, name, value)

    def _starts(self, name):
        return lambda module, arguments: self._running.append(name)

    def _ends(self, module, arguments, output):
        self._running.pop()

    def __torch_function__(self, function, types, arguments=(), options=None):
        options = options or {}
        if function is functional.multi_head_attention_forward:
            with torch.no_grad():
                self._keep(*_projected(*arguments, **options))
        elif function is functional.scaled_dot_product_attention:
            self._keep(*(arguments + tuple(options[x] for x in ("query", "key", "value") if x in options))[:3])
        return function(*arguments, **options)

    def _keep(self, q, k, v):
        name = self._running[-1] or "attention"
        calls = sum(layer.name == name or re.fullmatch(re.escape(name) + r"\.\d+", layer.name) is not None
                    for layer in self.layers)
        n, extra = q.shape[-2], self._class_tokens
        # Some models add their class tokens late: what is a square by itself has none yet.
        outside = extra if n > extra and (_square(n - extra) or not _square(n)) else 0
        self.layers.append(Layer(name if calls == 0 else f"{name}.{calls + 1}", _kept(q), _kept(k), _kept(v), outside))

    # ---- Afterwards ----

    def save(self, folder: str | os.PathLike[str]) -> list[pathlib.Path]:
        """Writes NAME.q.npy, NAME.k.npy and NAME.v.npy for each layer, and returns the paths of Q's, for
        `attnum inspect NAME.q.npy --skip-tokens N`."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for layer in self.layers:
            for name in "qkv":
                np.save(folder / f"{layer.name}.{name}.npy", getattr(layer, name))
        return [folder / f"{layer.name}.q.npy" for layer in self.layers]

    def inspect(self, html: str | os.PathLike[str] | None = None, **options: Any) -> dict[str, dict[str, Any]]:
        """`attnum inspect` of every layer's Q: by layer its tables, of which "inspect_advice" has the conclusion. With
        `html` also one page, which needs no other file.

        options   the program's: grid="14x14", dtype="bf16", m=[16, 49], heads=2, iterations=12, quick=True, ...
                  (`attnum inspect --help`); skip_tokens replaces the class tokens that were found"""
        if not self.layers:
            raise ArgumentError(f"model: no attention of {type(self.model).__name__} was seen: expected "
                                "scaled_dot_product_attention or torch.nn.MultiheadAttention, not compiled")
        found, pages = {}, []
        with tempfile.TemporaryDirectory(prefix="attnum-") as folder:
            paths = self.save(folder)
            for layer, path in zip(self.layers, paths):
                given = {"skip_tokens": layer.class_tokens, "layout": "bhnd", "format": "json", "html": "page.html"}
                done = _program.run(["inspect", path.name, *_arguments(given | options)], cwd=folder)
                if done.returncode != 0:
                    raise ArgumentError(f"{layer.name}: " + done.stderr.strip().removeprefix("attnum: "))
                found[layer.name] = json.loads(done.stdout)["inspect"]
                page = pathlib.Path(folder, "page.html").read_text()
                pages.append((layer, found[layer.name]["inspect_advice"], page))
        if html is not None:
            pathlib.Path(html).write_text(_page(type(self.model).__name__, pages), encoding="utf-8")
        return found


def _square(n):
    return math.isqrt(n) ** 2 == n


def _arguments(options):
    for name, value in options.items():
        if value is not False and value is not None:
            yield "--" + name.replace("_", "-")
            if value is not True:
                yield ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


_STYLE = """:root{color-scheme:light dark;--bg:#fff;--fg:#1d2433;--soft:#5b6577;--line:#dfe3ea;--warning:#b3261e;
--tip:#8a5a00;--fine:#1b7040;--note:#0b62a8}
@media(prefers-color-scheme:dark){:root{--bg:#14171d;--fg:#e6e9ef;--soft:#a2acbd;--line:#333a47;--warning:#ff8a80;
--tip:#f0b850;--fine:#6fd39b;--note:#5aaef2}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1120px;padding:20px 16px 48px;background:var(--bg);color:var(--fg);
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}h1{font-size:1.6rem;margin:.2em 0}p{margin:.4em 0}
.soft{color:var(--soft)}details{border-top:1px solid var(--line)}summary{cursor:pointer;padding:.6em 0}
summary b,summary span{display:block;margin-left:1.2em}summary b{display:inline;margin:0}
.verdict{display:inline-block;border:1px solid;border-radius:99px;padding:0 .65em;font:600 .85rem/1.5 system-ui,sans-serif}
.warning{color:var(--warning)}.tip{color:var(--tip)}.fine{color:var(--fine)}.note{color:var(--note)}
:focus-visible{outline:2px solid var(--note);outline-offset:2px}
iframe{width:100%;height:85vh;border:1px solid var(--line);border-radius:6px}"""


def _page(model, pages):
    """One page: every layer's conclusion, and behind it its page of `attnum inspect`."""
    parts = []
    for layer, (conclusion, *others), page in pages:
        name = page_text.escape(layer.name)
        sizes = " × ".join(map(str, layer.q.shape)) + (f", {layer.class_tokens} skipped" if layer.class_tokens else "")
        warnings = sum(line["severity"] == "warning" for line in others)
        count = f'<i class="verdict warning">{warnings} warning{"s" * (warnings != 1)}</i>' if warnings else ""
        parts.append(f'<details id="{name}"><summary><b>{name}</b> {count}<span class="{conclusion["severity"]}">'
                     f'{page_text.escape(conclusion["advice"])}</span><span class="soft">{sizes}</span></summary>'
                     f'<iframe loading="lazy" title="{name}" srcdoc="{page_text.escape(page)}"></iframe></details>')
    title = f"{page_text.escape(model)}: are the tokens of its layers safe?"
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n<meta name="viewport" '
            f'content="width=device-width, initial-scale=1"/>\n<title>{title}</title>\n<style>{_STYLE}</style>\n'
            f'</head>\n<body>\n<h1>{title}</h1>\n<p>The queries of every attention layer, b × h × n × d, as <code>attnum '
            'inspect</code> sees them. A layer opens its own page.</p>\n' + "\n".join(parts) + "\n</body>\n</html>\n")


def capture(model: torch.nn.Module) -> Capture:
    """Keeps Q, K and V of every attention layer of a model while it runs, with heads side by side and normalised as
    the layer does:

        with torch.no_grad(), attnum.torch.capture(model) as tokens:
            model(images)
        tokens.layers[0].name, tokens.layers[0].q.shape         # blocks.0.attn, (b, h, n, d)
        tokens.save("tokens")                                   # .npy files for attnum inspect and check
        tokens.inspect(html="model.html")

    Attention is what calls torch.nn.functional.scaled_dot_product_attention, and torch.nn.MultiheadAttention. Models
    of timm and transformers that would compute it otherwise (fused_attn=False, attn_implementation="eager") are let
    call it while the capture lasts. What torch.compile has compiled is not seen: give the model itself."""
    return Capture(model)


def inspect(model: torch.nn.Module, *inputs: Any, html: str | os.PathLike[str] | None = None,
            **options: Any) -> dict[str, dict[str, Any]]:
    """Runs model(*inputs) without gradients, and `attnum inspect` on the tokens of each of its attention layers:
    Capture.inspect, which has the options.

        found = attnum.torch.inspect(model, images, html="model.html", quick=True)
        found["blocks.0.attn"]["inspect_advice"][0]["advice"]   # the conclusion"""
    with torch.no_grad(), capture(model) as tokens:
        model(*inputs)
    return tokens.inspect(html, **options)
