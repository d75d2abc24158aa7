#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_networks.py TRAIN_ECHO: the networks of attnum train against PyTorch: the same parameters, pixels and labels,
the same logits, loss and gradients, in f64 and in f32; and the same losses for 50 steps of AdamW. Exits with 77 without
PyTorch and NumPy."""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch_networks
except ImportError as missing:
    print(missing)
    sys.exit(77)

MOST = 10 * 64  # roundoffs: 10 n u, n the width, as the ruler has it for outputs (reference/ruler.h)
SPREAD = 10  # between two ways to round, see compare_steps
STEPPED = ("softmax none", "soft/code none", "sima none", "xnorm none", "xnorm p-norm", "xnorm layer-norm")
NAMES = [f"{name} none" for name in torch_networks.NAMES]
NAMES += [f"{name} {change}" for name, changes in torch_networks.CHANGES.items() for change in changes]


def distance(got, want):
    return float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-300))


def network_of(name, parameters):
    operator, change = name.split()
    return torch_networks.Network(operator.split("/")[0], parameters, change=change)


def losses_of(name, parameters, file, dtype):
    """The loss before each step of AdamW."""
    trained = {key: p for key, p in parameters.items() if not key.endswith(torch_networks.DRAWN)}
    network = network_of(name, parameters)
    optimizer = torch.optim.AdamW([{"params": [p for key, p in trained.items() if torch_networks.decays(key, p) == decays],
                                    "weight_decay": 0.05 * decays} for decays in (True, False)], lr=1e-3)
    losses = []
    for pixels, labels in zip(torch.tensor(file["pixels"], dtype=dtype), torch.tensor(file["labels"]).long()):
        optimizer.zero_grad()
        loss = torch_networks.loss_of(network.forward(pixels), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def compare_steps(name, file, parameters):
    """How far f32's losses are from f64's, both ours, is how rounding grows. PyTorch rounds in its own way, and may be
    apart by SPREAD times that; in f64 by as much less as its roundoff is."""
    growth = np.abs(file["f32.losses"] - file["losses"]).max()
    failed = 0
    for dtype, prefix, share in ((torch.float64, "", 2.0 ** -29), (torch.float32, "f32.", 1)):
        copies = {key: torch.tensor(value, dtype=dtype, requires_grad=True) for key, value in parameters.items()}
        apart = np.abs(file[prefix + "losses"] - losses_of(name, copies, file, dtype)).max()
        good = apart <= SPREAD * growth * share
        failed += not good
        print("ok   " if good else "FAIL ", name, str(dtype)[6:], f"{len(file['losses'])} steps, losses from "
              f"{file['losses'][0]:.3g} to {file['losses'][-1]:.3g}: {apart:.3g} apart, "
              f"{apart / (growth * share):.2g} of rounding's growth", flush=True)
    return failed


def compare(name, echo, folder):
    subprocess.run([echo, *name.split(), folder], check=True)
    file = np.load(folder / "network.npz")
    names = [key[5:] for key in file.files if key.startswith("grad.")]
    failed = 0
    for dtype, prefix, roundoff in ((torch.float64, "", 2.0 ** -53), (torch.float32, "f32.", 2.0 ** -24)):
        parameters = {key: torch.tensor(file[key], dtype=dtype, requires_grad=True) for key in names}
        network = network_of(name, parameters)
        logits = network.forward(torch.tensor(file["pixels"][0], dtype=dtype))
        loss = torch_networks.loss_of(logits, torch.tensor(file["labels"][0]).long())
        loss.backward()
        found = {"logits": (file[prefix + "logits"], logits.detach().double().numpy()),
                 "loss": (file[prefix + "loss"], np.array([float(loss.detach())]))}
        got = np.concatenate([file[f"{prefix}grad.{key}"].ravel() for key in names])
        want = np.concatenate([(torch.zeros_like(p) if p.grad is None or key.endswith(torch_networks.DRAWN)
                                else p.grad).double().numpy().ravel() for key, p in parameters.items()])
        found["gradient"] = got, want
        errors = {key: distance(*pair) / roundoff for key, pair in found.items()}
        good = all(error <= MOST for error in errors.values())
        failed += not good
        print("ok   " if good else "FAIL ", name, str(dtype)[6:],
              ", ".join(f"{key} {error:.3g} u" for key, error in errors.items()), flush=True)
    if name in STEPPED:
        failed += compare_steps(name, file, {key: file[key] for key in names})
    return failed


torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    failed = sum(compare(name, pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder)) for name in NAMES)
sys.exit(1 if failed else 0)
