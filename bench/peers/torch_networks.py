# SPDX-License-Identifier: BSD-3-Clause
"""The networks of attnum train in PyTorch's operations."""
import numpy as np
import torch
import torch.nn.functional as F
import torch_operators as forms

HEADS, SMOOTHING, GRID, STRIDE = 2, 0.1, 14, 2
DRAWN = ("projection", "rotations")  # parameters that are never trained
NAMES = ("softmax", "soft/code", "softpp/paper", "gaussian", "sima", "xnorm", "linformer", "performer", "rff",
         "nystromformer/exact", "xca", "efficient", "elu", "cosformer", "lsh")
CHANGES = {"xnorm": ("l2-queries", "l2-clusters", "p-norm", "layer-norm", "group-norm", "instance-norm")}  # attnum train --change
forms.LSH_CHUNK = 28


class Network:
    """Of one operator, as experiments/train/model.h describes it; `fast`: by products and calls that PyTorch has
    for the whole, where rounding is not looked at."""

    def __init__(self, name, parameters, fast=False, change="none"):
        self.name, self.p, self.change = name, parameters, change
        self.kernel, self.softmax = ((forms.kernel_lean, forms.softmax_fused) if fast else
                                     (kernel_by_differences, forms.softmax))
        self.after = name in ("soft", "softpp")

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.p[name + ".weight"], self.p[name + ".bias"])

    def linear(self, x, name):
        return F.linear(x, self.p[name + ".weight"], self.p[name + ".bias"])

    def attend(self, x, block):
        def own(name):
            return self.p.get(f"{block}.attention.{name}")
        parts = self.linear(x, block + ".input").chunk(self.p[block + ".input.weight"].shape[0] // x.shape[-1], -1)
        q, v = ((part.unflatten(-1, (HEADS, -1)).transpose(1, 2)) for part in (parts[0], parts[-1]))
        k = parts[1].unflatten(-1, (HEADS, -1)).transpose(1, 2) if len(parts) == 3 else q
        given = {"m": 49}
        if own("gamma") is not None:
            given["gamma"] = own("gamma").view(1, HEADS, 1, 1)
        if own("temperature") is not None:
            given["temperature"] = own("temperature").view(1, HEADS, 1, 1)
        if own("e") is not None:
            given["e"] = given["f"] = own("e")[None, None]
        if own("projection") is not None:
            given["projection"] = own("projection")[None]
        if own("rotations") is not None:
            given["rotations"] = own("rotations")[None]
        if self.after:
            y = self.soft(q, v, own)
        elif self.name == "nystromformer":
            y = nystromformer(q, k, v)
        elif self.change in CHANGES["xnorm"]:
            y = crossnorm(q, k, v, self.change, own)
        elif self.name == "gaussian":
            y = self.kernel(q, q) @ v
        elif self.name == "softmax":
            y = self.softmax(q, k, v, given)
        else:
            y = getattr(forms, self.name)(q, k, v, given)
        return self.linear(y.transpose(1, 2).flatten(2), block + ".output")

    def soft(self, q, v, own):
        """The published code's landmarks (one convolution for all heads, LayerNorm, GELU) and residual."""
        b, h, n, d = q.shape
        grids = q.transpose(-1, -2).reshape(b * h, d, GRID, GRID)
        landmarks = F.conv2d(grids, own("conv"), stride=STRIDE).flatten(2).transpose(1, 2)
        landmarks = F.gelu(F.layer_norm(landmarks, (d,), own("norm_weight"), own("norm_bias")))
        landmarks = landmarks.view(b, h, -1, d)
        a, p = self.kernel(landmarks, landmarks), self.kernel(q, landmarks)
        if self.name == "soft":
            x = forms.Inverse.apply(a, 1.8, 0.01)  # the published code's
        else:
            root = a.sum(-1) ** -0.5
            x = root[..., :, None] * forms.Inverse.apply(a) * root[..., None, :]
        filters = own("residual")[:, None]
        values = v.permute(0, 3, 1, 2).reshape(b * d, h, GRID, GRID)
        residual = F.conv2d(values, filters, padding=filters.shape[-1] // 2, groups=h)
        return (p @ x) @ (p.transpose(-1, -2) @ v) + residual.view(b, d, h, n).permute(0, 2, 3, 1)

    def scale(self, x, name):
        return x * self.p[name] if name in self.p else x

    def forward(self, pixels):
        b = pixels.shape[0]
        patches = F.unfold(pixels.view(b, 1, 28, 28), 2, stride=2).transpose(1, 2)
        x = self.linear(patches, "patch") + self.p["position"]
        for i in range(4):
            block = f"blocks.{i}"
            if self.after:
                x = self.norm(x + self.attend(x, block), block + ".norm1")
                x = self.norm(x + self.mlp(x, block), block + ".norm2")
            else:
                x = x + self.scale(self.attend(self.norm(x, block + ".norm1"), block), block + ".scale1")
                x = x + self.scale(self.mlp(self.norm(x, block + ".norm2"), block), block + ".scale2")
        return self.linear(self.norm(x, "norm").mean(1), "head")

    def mlp(self, x, block):
        return self.linear(F.gelu(self.linear(x, block + ".hidden"), approximate="tanh"), block + ".mlp")


def crossnorm(q, k, v, change, own):
    """experiments/train/crossnorm.h; its rows are tokens, or clusters."""
    def norm(x, side):
        heads, rows, d = x.shape[-3:]
        if change in ("l2-queries", "l2-clusters") and side not in change:
            return x
        if change in ("l2-queries", "l2-clusters", "p-norm"):
            p = own("p").view(heads, 1, 1) if change == "p-norm" else 2
            return own("gamma").view(heads, 1, 1) * x / (x.abs() ** p).sum(-1, keepdim=True) ** (1 / p)
        channels = x.mT.reshape(-1, d, rows)
        if change == "layer-norm":
            x = F.layer_norm(x, (d,))
        else:
            x = (F.group_norm(channels, d // 8) if change == "group-norm" else F.instance_norm(channels)).mT.view(x.shape)
        return x * own(side + "_weight")[:, None] + own(side + "_bias")[:, None]
    sides = ("queries", "clusters") if change.startswith("l2") else ("query", "cluster")
    return norm(q, sides[0]) @ norm(v.mT @ k, sides[1]).mT


def decays(key, parameter):
    """Whether AdamW's weight decay is for it: matrices, but not the position, nor a norm's weights for each head."""
    return parameter.ndim > 1 and not key.endswith(("position", "query_weight", "query_bias", "cluster_weight", "cluster_bias"))


def read_parameters(weights):
    """Those of a file that attnum train wrote, as f32 tensors; all but drawn ones have gradients."""
    return {key: torch.tensor(value, requires_grad=not key.endswith(DRAWN))
            for key, value in np.load(weights).items() if "metadata" not in key}


def kernel_by_differences(x, y):
    """exp(-|x - y|^2 / (2 sqrt(d))), distances by differences."""
    return torch.exp(-((x[..., :, None, :] - y[..., None, :, :]) ** 2).sum(-1) / (2 * x.shape[-1] ** 0.5))


def nystromformer(q, k, v, m=49):
    """The published form, but that each matrix starts from its own norm."""
    c = q.shape[-1] ** -0.5
    landmarks_q, landmarks_k = forms.averages(q, m), forms.averages(k, m)
    left, right = (q @ landmarks_k.mT * c).softmax(-1), (landmarks_q @ k.mT * c).softmax(-1)
    a = (landmarks_q @ landmarks_k.mT * c).softmax(-1)
    eye = torch.eye(m, dtype=q.dtype)
    z = a.mT / a.sum(-2).amax(-1)[..., None, None]
    for _ in range(6):
        az = a @ z
        z = 0.25 * z @ (13 * eye - az @ (15 * eye - az @ (7 * eye - az)))
    return (left @ z) @ (right @ v)


def loss_of(logits, labels):
    return F.cross_entropy(logits, labels, label_smoothing=SMOOTHING)
