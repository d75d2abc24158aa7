"""SOFT as a layer of PyTorch's, and its gradients."""
import attnum.torch
import torch

pool = {"kind": "pool", "height": 14, "width": 14, "stride": 2}  # 49 landmarks for 196 tokens
layer = attnum.torch.Attention("soft", sampling=pool, inverse="cholesky")  # one class for every operator
q = torch.randn(2, 4, 196, 32, requires_grad=True)
y = layer(q, v=q)  # or attnum.torch.attention("soft", q, v=q, sampling=pool, inverse="cholesky")
y.square().sum().backward()
print(y.shape, q.grad.isfinite().all().item(), layer.outcome(q, v=q).status.name)
