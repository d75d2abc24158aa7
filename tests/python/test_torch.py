# SPDX-License-Identifier: BSD-3-Clause
"""attnum.torch: derivatives by differences, memory, compilation, what a capture sees of models."""
import html
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import unittest.mock
import warnings

import attnum
import numpy as np
from test_attention import options_of

TORCH = importlib.util.find_spec("torch") is not None
DEVICE = os.environ.get("ATTNUM_DEVICE") == "cuda"
if TORCH:
    import attnum.torch
    import torch
    from torch import library
    from torch.nn import functional

N, D = 16, 4
POOL = {"kind": "pool", "height": 4, "width": 4, "stride": 2}


def installed(name):
    return importlib.util.find_spec(name) is not None


def tokens(seed, *shape, grad=True, dtype=None, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*(shape or (1, 2, N, D)), generator=generator, dtype=dtype or torch.float64)
    return x.to(device).requires_grad_(grad)


def on(device, options):
    """The options with their arrays as tensors in f64."""
    return {name: torch.tensor(x, dtype=torch.float64, device=device) if isinstance(x, np.ndarray) else x
            for name, x in options.items()}


def train(layer, q):
    """The losses of a layer that learns to be softmax attention."""
    wanted = functional.scaled_dot_product_attention(q, q, q)
    optimiser = torch.optim.Adam(layer.parameters(), 0.05)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = (layer(q, q, q) - wanted).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


class Missing(unittest.TestCase):
    def test_sentence(self):
        done = subprocess.run([sys.executable, "-c", "import sys; sys.modules['torch'] = None; import attnum.torch"],
                              capture_output=True, text=True)
        self.assertIn("ImportError: attnum.torch needs PyTorch, which is not installed: pip install torch", done.stderr)


@unittest.skipUnless(TORCH, "PyTorch is not installed")
class Gradients(unittest.TestCase):
    device = "cpu"

    def tokens(self, *arguments, **options):
        return tokens(*arguments, device=self.device, **options)

    def judged(self, op, q, k, v, **options):
        """gradcheck by q, k, v and the tensors among the options that want a gradient."""
        inner = {key: value for value in options.values() if isinstance(value, dict) for key, value in value.items()}
        wanted = [x for x in (q, k, v, *options.values(), *inner.values())
                  if isinstance(x, torch.Tensor) and x.requires_grad]
        return torch.autograd.gradcheck(lambda *_: attnum.torch.attention(op, q, k, v, **options), wanted,
                                        fast_mode=self.device == "cuda")  # a call takes longer there

    def test_every_operator(self):
        seen = set()
        for case in attnum.cases(n=N, d=D, dtype="f32"):
            with self.subTest(case=case.name):
                q, k, v = (None if x is None else
                           torch.tensor(x, dtype=torch.float64, device=self.device, requires_grad=True)
                           for x in (case.q, case.k, case.v))
                self.assertTrue(self.judged(case.operator, q, k, v, variant=case.variant,
                                            **on(self.device, options_of(case))))
                seen.add(case.operator)
        self.assertEqual(seen, set(attnum.operators()))

    def test_every_parameter(self):
        q, k, v = (self.tokens(i, grad=False) for i in range(3))
        conv = {"kind": "conv-code", "height": 4, "width": 4, "stride": 2, "weights": self.tokens(3, D, D, 2, 2),
                "norm_weight": self.tokens(4, 1, D), "norm_bias": self.tokens(5, 1, D)}
        grid = {"residual": self.tokens(6, 2, 3, 3), "residual_height": 4, "residual_width": 4, "inverse": "cholesky"}
        landmarks = {"landmarks": 4, "residual": self.tokens(6, 2, 3, 1)}
        e, f = self.tokens(7, N, 3), self.tokens(8, N, 3)
        one = {"gamma": self.tokens(9, 2, 1, 1), "temperature": self.tokens(9, 2, 1, 1)}
        for op, options, tensors in (("soft", {"sampling": conv} | grid, 4), ("nystromformer", landmarks, 1),
                                     ("linformer", {"e": e}, 1), ("linformer", {"e": e, "f": f}, 2),
                                     ("xnorm", {"gamma": one["gamma"]}, 1),
                                     ("xca", {"temperature": one["temperature"]}, 1)):
            with self.subTest(op=op, tensors=tensors):
                self.assertTrue(self.judged(op, q, None if op == "soft" else k, v, **options))
        self.assertEqual({name for op in attnum.operators() for _, name in attnum.torch._places(op).values()} - {None},
                         set(attnum.listed("parameter")))

    def test_through_an_iteration(self):
        q, v = self.tokens(1), self.tokens(2)
        for gradient, right in (("steps", True), ("closed", False)):  # Eq. 12 is not the derivative of four steps
            with self.subTest(gradient=gradient):
                options = {"sampling": POOL, "gradient": gradient, "inverse": {"method": "nr-paper", "iterations": 4}}
                found = torch.autograd.gradcheck(lambda q, v: attnum.torch.attention("soft", q, None, v, **options),
                                                 (q, v), raise_exception=False)
                self.assertEqual(found, right)

    def test_masks_and_keys(self):
        q, k, v = self.tokens(1), self.tokens(2, 1, 2, 9, D), self.tokens(3, 1, 2, 9, 5)
        there = torch.arange(9, device=self.device)[None] < 6
        y = attnum.torch.attention("softmax", q, k, v, key_mask=there)
        torch.testing.assert_close(y, functional.scaled_dot_product_attention(q, k, v, there[:, None, None]))
        self.assertTrue(torch.autograd.gradcheck(
            lambda q, k, v: attnum.torch.attention("softmax", q, k, v, key_mask=there), (q, k, v)))
        y.sum().backward()  # a derivative that repeats one number
        self.assertTrue((v.grad[:, :, 6:] == 0).all() and (v.grad[:, :, :6] != 0).all())


@unittest.skipUnless(DEVICE, "a GPU's: ATTNUM_DEVICE=cuda asks for them")
class OnDevice(Gradients):
    """The same with tensors in CUDA memory, and what only a device has: 16-bit floats and streams."""
    device = "cuda"

    def test_values(self):
        for dtype in (torch.float64, torch.float32, torch.float16):
            name = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16"}[dtype]
            for case in attnum.cases(n=N, d=D, dtype=name):
                with self.subTest(case=case.name, dtype=name):
                    q, k, v, dy = (None if x is None else torch.tensor(x, dtype=dtype, device="cuda")
                                   for x in (case.q, case.k, case.v, case.dout))
                    given = {key: x.requires_grad_() for key, x in zip("qkv", (q, k, v)) if x is not None}
                    y = attnum.torch.attention(case.operator, **given, variant=case.variant,
                                               **on("cuda", options_of(case)))
                    y.backward(dy)
                    case.check(y, gradients={key: x.grad for key, x in given.items()}, dtype=name).assert_ok()

    def test_streams(self):
        """A call is enqueued after the work of the current stream, and the stream's later work after it."""
        q, k, v = (self.tokens(i, 4, 8, 1024, 32, grad=False, dtype=torch.float32) for i in range(3))
        wanted = attnum.torch.attention("softmax", 2 * q, k, v)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(5):
                twice = q + q  # in memory that the next turn's takes again
                y = 1 * attnum.torch.attention("softmax", twice, k, v)
                del twice
        torch.cuda.current_stream().wait_stream(stream)
        self.assertTrue(torch.equal(y, wanted))

    def test_views(self):
        q, k, v = torch.randn(2, N, 3, 5, D, device="cuda").unbind(2)
        y = attnum.torch.attention("sima", q, k, v, layout="bnhd")
        dense = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
        self.assertTrue(torch.equal(attnum.torch.attention("sima", *dense).transpose(1, 2), y))

    def test_training(self):
        layer, q = attnum.torch.Attention("linformer", e=torch.randn(N, 3)).cuda(), torch.randn(2, 3, N, D).cuda()
        losses = train(layer, q)
        self.assertLess(losses[-1], 0.9 * losses[0])


@unittest.skipUnless(TORCH, "PyTorch is not installed")
class Memory(unittest.TestCase):
    def test_views(self):
        packed = torch.randn(2, N, 3, 5, D)  # b x n x 3 x h x d, as one product gives them
        q, k, v = packed.unbind(2)
        y = attnum.torch.attention("sima", q, k, v, layout="bnhd")
        heads = [x.transpose(1, 2) for x in (q, k, v)]
        self.assertEqual([attnum.torch._memory(x).data_ptr() for x in heads], [x.data_ptr() for x in heads])
        self.assertTrue(torch.equal(attnum.torch.attention("sima", *heads).transpose(1, 2), y))
        wanted = attnum.attention("sima", *(x.numpy() for x in heads))
        np.testing.assert_array_equal(y.transpose(1, 2).numpy(), wanted)
        strided = torch.randn(2, 3, D, N).transpose(2, 3)
        self.assertTrue(torch.equal(attnum.torch.attention("sima", strided, strided, strided),
                                    attnum.torch.attention("sima", *(strided.contiguous(),) * 3)))
        one = torch.randn(1, 1, N, D).expand(2, 3, N, D)
        self.assertTrue(torch.equal(attnum.torch.attention("sima", one, one, one),
                                    attnum.torch.attention("sima", *(one.contiguous(),) * 3)))
        self.assertEqual(attnum.torch.attention("sima", q[0, :, 0], k[0, :, 0], v[0, :, 0]).shape, (N, D))

    def test_plans_are_kept(self):
        layer = attnum.torch.Attention("xnorm", gamma=torch.ones(2, 1, 1))
        q, k, v = (tokens(i, grad=False, dtype=torch.float32) for i in range(3))
        before = layer(q, k, v)
        kept = list(attnum.torch._plans)
        with torch.no_grad():
            layer.gamma *= 2
        self.assertTrue(torch.equal(layer(q, k, v), 4 * before))  # Y has gamma squared, and 4 is exact
        self.assertEqual(list(attnum.torch._plans), kept)
        w = torch.randn(8, D, dtype=torch.float32)  # two arrays that begin at one address
        for count in (8, 4):
            y = attnum.torch.attention("performer", q, k, v, projection=w[:count])
            np.testing.assert_array_equal(y, attnum.attention("performer", q, k, v, projection=w[:count].numpy()))
        for n in range(1, 100):
            attnum.torch.attention("softmax", *(torch.ones(n, 2),) * 3)
        self.assertLessEqual(len(attnum.torch._plans), attnum.torch._KEPT)

    def test_lists_are_not_rounded(self):
        q, e = tokens(1, grad=False), torch.randn(N, 3, dtype=torch.float64) / 3
        self.assertTrue(torch.equal(attnum.torch.attention("linformer", q, q, q, e=e.tolist()),
                                    attnum.torch.attention("linformer", q, q, q, e=e)))

    def test_forward_mode_is_refused(self):
        q = tokens(1, grad=False)
        with self.assertRaisesRegex(attnum.UnsupportedError, "reverse mode only"):
            torch.func.jvp(lambda x: attnum.torch.attention("softmax", x, q, q), (q,), (q,))

    def test_types_and_signs_that_are_checked(self):
        q = tokens(1, grad=False, dtype=torch.float32)
        y = torch.softmax(q @ q.mT / 2, -1) @ q
        narrow = {"op": "softmax", "q": q, "k": q, "v": q}
        self.assertTrue(attnum.check(-y, **narrow | {"v": torch._neg_view(q)}))
        case, = attnum.cases("sima/code", n=36, d=8, heads=2)
        for result in (case.check(torch.tensor(case.output).bfloat16()),
                       case.check(gradients={"q": torch.tensor(case.array("grad_tokens")).bfloat16()})):
            self.assertEqual((result.verdict, result.summary["dtype"]), ("pass", "bf16"))

    def test_bad_input(self):
        q = tokens(1, grad=False)
        for sentence, call in (
                ("^v: none", lambda: attnum.torch.attention("sima", q)),
                ("^q: none", lambda: attnum.torch.attention("sima", None, q, q)),
                ("^v: none", lambda: attnum.torch.Attention("sima").outcome(q)),
                ("^k: ndarray", lambda: attnum.torch.attention("sima", q, q.numpy(), q)),
                ("^q: dtype torch.int64", lambda: attnum.torch.attention("sima", *(q.long(),) * 3)),
                ("^k: dtype torch.bfloat16, expected", lambda: attnum.torch.attention("sima", q, q.bfloat16(), q)),
                ("^v: torch.sparse_coo, expected", lambda: attnum.torch.attention("sima", q, q, q.to_sparse())),
                ("^v is f32, expected f64", lambda: attnum.torch.attention("sima", q, q, q.float())),
                ("^sampling.indices: dtype torch.float64, expected torch.int64", lambda: attnum.torch.attention(
                    "soft", q, v=q, sampling={"kind": "indices", "indices": torch.tensor([0.9, 2.9]).double()})),
                ("^sampling.indices: dtype torch.bool", lambda: attnum.torch.attention(
                    "soft", q, v=q, sampling={"kind": "indices", "indices": torch.ones(N, dtype=torch.bool)})),
                ("^e: dtype torch.complex128", lambda: attnum.torch.attention(
                    "linformer", q, q, q, e=torch.ones(N, 2, dtype=torch.complex128))),
                ("^q: a negated view", lambda: attnum.attention("sima", torch._neg_view(q), q, q)),
                ("^q: on meta", lambda: attnum.torch.attention("sima", *(q.to("meta"),) * 3)),
                ("^sampling.kid: no such option", lambda: attnum.torch.Attention("soft", sampling={"kid": 1})(q, v=q)),
                ("^nonsense: softmax has no such option", lambda: attnum.torch.attention("softmax", q, q, q, nonsense=1)),
                ("^norm: object, expected", lambda: attnum.torch.attention("sima", q, q, q, norm=object()))):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(attnum.ArgumentError, sentence):
                call()


@unittest.skipUnless(TORCH, "PyTorch is not installed")
class Modules(unittest.TestCase):
    def layer(self):
        e = torch.randn(N, 3, generator=torch.Generator().manual_seed(1))
        return attnum.torch.Attention("linformer", e=e)

    def test_parameters(self):
        layer = self.layer()
        self.assertEqual([name for name, _ in layer.named_parameters()], ["e"])
        w = torch.randn(8, D)
        performer = attnum.torch.Attention("performer", projection=w, stabilise=True)
        self.assertEqual(list(dict(performer.named_buffers())), ["projection"])
        q, k, v = (tokens(i, grad=False) for i in range(3))
        doubled = performer.double()(q, k, v)
        wanted = attnum.attention("performer", *(x.numpy() for x in (q, k, v)), projection=w.double().numpy(),
                                  stabilise=True)
        np.testing.assert_array_equal(doubled.numpy(), wanted)
        drawn = {"kind": "kmeans", "count": 4, "uniforms": torch.rand(4), "steps": 2}
        soft = attnum.torch.Attention("soft", sampling=drawn, inverse={"method": "nr-paper", "iterations": 2})
        self.assertEqual(soft.outcome(q, v=v).status, attnum.Status.NOT_CONVERGED)
        self.assertIn("soft, sampling.kind=kmeans", repr(soft))

    def test_training(self):
        layer, q = self.layer(), torch.randn(2, 3, N, D)
        losses = train(layer, q)
        self.assertLess(losses[-1], 0.9 * losses[0])

    def test_compiled_by_inductor(self):
        """The default, which needs a compiler for C++."""
        if not shutil.which("g++") or not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
            self.skipTest("no g++, or no headers of Python's")
        layer, x = self.layer(), torch.randn(1, 2, N, D)
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ,
                                                                               TORCHINDUCTOR_CACHE_DIR=folder):
            compiled = torch.compile(lambda x: layer(x.relu(), x, x).tanh(), fullgraph=True)(x)
        torch.testing.assert_close(compiled, layer(x.relu(), x, x).tanh())

    def test_compiled(self):
        """aot_eager traces forward and backward as the default does, and needs no compiler on this machine."""
        for layer, q in ((self.layer(), torch.randn(2, 3, N, D)),
                         (attnum.torch.Attention("soft", sampling=POOL, inverse="cholesky"), torch.randn(1, 2, N, D))):
            k = None if layer.op == "soft" else q
            found = []
            for call in (layer, torch.compile(layer, backend="aot_eager", fullgraph=True)):
                x = q.clone().requires_grad_()
                y = call(2 * x, None if k is None else 2 * x, x)
                y.square().sum().backward()
                found.append((y.detach(), x.grad, *(p.grad.clone() for p in layer.parameters())))
                layer.zero_grad()
            for eager, compiled in zip(*found):
                torch.testing.assert_close(eager, compiled)

    def test_operator_is_as_it_says(self):
        """PyTorch's own checks: schema, no aliases, the fake form's shapes, autograd."""
        q, k, v = (tokens(i) for i in range(3))
        e = tokens(4, N, 3)
        _, text = attnum.torch._split("linformer", {"e": e})
        library.opcheck(torch.ops.attnum.attention.default, (q, k, v, [e], None, None, text))
        dense = tokens(5, 1, N, 2, D)
        _, text = attnum.torch._split("softmax", {"layout": "bnhd"})
        library.opcheck(torch.ops.attnum.attention.default, (dense, dense, dense, [], None, None, text))


def seen(model, *inputs):
    with torch.no_grad(), attnum.torch.capture(model) as found:
        model(*inputs)
    return found.layers


@unittest.skipUnless(TORCH, "PyTorch is not installed")
class Captures(unittest.TestCase):
    def test_calls(self):
        class Model(torch.nn.Module):
            def forward(self, q, k, v):
                functional.scaled_dot_product_attention(q, k, value=v)
                return functional.scaled_dot_product_attention(query=q[0, 0], key=k[0, 0], value=v[0, 0])

        q, k, v = torch.randn(2, 3, 6, 5), torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 4)
        first, second = seen(torch.nn.Sequential(), q) or seen(Model(), q, k, v)
        self.assertEqual((first.name, second.name), ("attention", "attention.2"))
        for x, y in zip((q, k, v), first[1:4]):
            np.testing.assert_array_equal(x, y)
        self.assertEqual(second.q.shape, (1, 1, 6, 5))

    def test_class_tokens(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cls_token = torch.nn.Parameter(torch.zeros(1, 7, 4))

            def forward(self, q):
                return functional.scaled_dot_product_attention(q, q, q)

        # 7 + 9; a square that is none without them: added later; no square either way; too few
        for n, outside in ((16, 7), (9, 0), (12, 7), (7, 0), (25, 0), (8, 7)):
            layer, = seen(Model(), torch.randn(1, 1, n, 4))
            self.assertEqual(layer.class_tokens, outside, f"{n} tokens")

    def test_multihead_attention(self):
        x, y, z = torch.randn(2, 9, 12), torch.randn(2, 7, 5), torch.randn(2, 7, 6)
        own = torch.nn.MultiheadAttention(12, 3, batch_first=True)
        other = torch.nn.MultiheadAttention(12, 3, batch_first=True, kdim=5, vdim=6, bias=False)
        rows = torch.nn.MultiheadAttention(12, 3, batch_first=True, add_bias_kv=True, add_zero_attn=True)
        torch.nn.init.normal_(own.in_proj_bias)  # 0 at first
        for model, inputs in ((own, (x, x, x)), (own, (x, x, x, None, False)), (other, (x, y, z)), (rows, (x, x, x))):
            for model in (model.train(), model.eval()):  # which has a fast path of its own
                layer, = seen(model, *inputs)
                with torch.no_grad():
                    wanted = model(*inputs)[0]
                    heads = functional.scaled_dot_product_attention(*map(torch.tensor, layer[1:4]))
                    torch.testing.assert_close(model.out_proj(heads.transpose(1, 2).flatten(2)), wanted)
        with warnings.catch_warnings(action="ignore"):
            encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(12, 3, batch_first=True), 2).eval()
        self.assertEqual([layer.name for layer in seen(encoder, x)], ["layers.0.self_attn", "layers.1.self_attn"])

    def test_nothing_is_left_behind(self):
        model = torch.nn.MultiheadAttention(12, 3, batch_first=True)
        x = torch.randn(2, 9, 12)
        with self.assertRaises(RuntimeError):
            with attnum.torch.capture(model) as found:
                model(x[..., :5], x, x)
        self.assertFalse(model._forward_hooks or model._forward_pre_hooks)
        model(x, x, x)
        self.assertEqual(found.layers, [])
        with self.assertRaisesRegex(attnum.ArgumentError, "^model: no attention of Linear was seen"):
            attnum.torch.inspect(torch.nn.Linear(2, 2), torch.ones(2))

    @unittest.skipUnless(installed("timm"), "timm is not installed")
    def test_timm(self):
        import timm
        images = torch.randn(2, 3, 32, 32)
        model = timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=2, reg_tokens=4).eval()
        layers = seen(model, images)
        self.assertEqual([(layer.name, layer.q.shape, layer.class_tokens) for layer in layers],
                         [(f"blocks.{i}.attn", (2, 3, 21, 64), 5) for i in range(2)])
        for block in model.blocks:
            block.attn.fused_attn = False
        for layer, again in zip(layers, seen(model, images), strict=True):
            np.testing.assert_array_equal(layer.q, again.q)
        self.assertFalse(model.blocks[0].attn.fused_attn)
        averaged = timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=1, class_token=False,
                                     global_pool="avg").eval()
        self.assertEqual(seen(averaged, images)[0].class_tokens, 0)

    @unittest.skipUnless(installed("transformers"), "transformers is not installed")
    def test_transformers(self):
        import transformers
        sizes = {"num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 64}
        vit = transformers.ViTModel(transformers.ViTConfig(image_size=32, patch_size=8, **sizes)).eval()
        bert = transformers.BertModel(transformers.BertConfig(**sizes)).eval()
        for model, x, n, skipped in ((vit, torch.randn(1, 3, 32, 32), 17, 1), (bert, torch.arange(20)[None], 20, 0)):
            for form in ("sdpa", "eager"):
                with self.subTest(model=type(model).__name__, form=form):
                    model.set_attn_implementation(form)
                    layers = seen(model, x)
                    self.assertEqual([(layer.q.shape, layer.class_tokens) for layer in layers],
                                     2 * [((1, 4, n, 12), skipped)])
                    self.assertEqual(model.config._attn_implementation, form)

    def test_inspect(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cls_token = torch.nn.Parameter(torch.zeros(1, 1, 12))
                self.blocks = torch.nn.ModuleList(torch.nn.MultiheadAttention(12, 3, batch_first=True)
                                                  for _ in range(2))

            def forward(self, x):
                x = torch.cat((self.cls_token.expand(len(x), 1, 12), x), 1)
                for block in self.blocks:
                    x = x + block(x, x, x)[0]
                return x

        model, x = Model().eval(), torch.randn(1, 16, 12)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "model.html")
            found = attnum.torch.inspect(model, x, html=page, quick=True, m=[4], heads=1)
            self.assertEqual(list(found), ["blocks.0", "blocks.1"])
            for name, tables in found.items():
                self.assertEqual(tables["inspect_advice"][0]["rule"], "conclusion")
                self.assertTrue(all(row["tokens"] == 16 and row["m"] == 4 for row in tables["inspect"]))
                self.assertIn(f'<details id="{name}">', page.read_text())
                self.assertIn(html.escape(tables["inspect_advice"][0]["advice"]), page.read_text())
            with torch.no_grad(), attnum.torch.capture(model) as tokens:
                model(x)
            paths = tokens.save(folder)
            np.testing.assert_array_equal(np.load(paths[1]), tokens.layers[1].q)
            self.assertEqual([path.name for path in paths], ["blocks.0.q.npy", "blocks.1.q.npy"])


if __name__ == "__main__":
    unittest.main()
