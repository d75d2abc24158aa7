# SPDX-License-Identifier: BSD-3-Clause
"""attnum's operators in PyTorch's operations, one by one and eagerly, as their published code has them:
the default variant of each, on q, k, v of batch x heads x n x d (k None: K = Q).

`eager` is the published code's order of operations, `lean` what is left where an attentive user of
PyTorch takes out what it computes for nothing, `fused` what scaled_dot_product_attention, PyTorch's call for
softmax, makes of it. Each is also compiled by torch.compile: `compiled` is eager, `lean-compiled` lean, and so on.

    soft, softpp    fudan-zvg/SOFT: squared distances as three products ("torch" kernel), (P X) (P^T V),
                    landmarks as averages of n/m consecutive tokens (what `attnum bench` times, too)
    sima            UCDvision/sima            xnorm         xmu-xiaoma666/External-Attention-pytorch
    linformer       lucidrains/linformer      performer     lucidrains/performer-pytorch
    rff, elu        idiap/fast-transformers   nystromformer mlpen/Nystromformer
    xca             facebookresearch/xcit     efficient     cmsflash/efficient-attention
    cosformer       OpenNLPLab/cosFormer      lsh           lucidrains/reformer-pytorch"""
import math

import torch
import torch.nn.functional as F

LSH_ROUNDS, LSH_CHUNK = 8, 49


# ---- Gaussian kernels ----

def kernel_published(x, y):
    """exp(-|x - y|^2 / (2 sqrt(d))), |x|^2 and |y|^2 as products with matrices of ones."""
    scale = x.shape[-1] ** -0.25
    x, y = x * scale, y * scale
    y = y.transpose(-1, -2)
    ones_x = torch.ones(x.shape[-1], y.shape[-1], dtype=x.dtype, device=x.device)
    ones_y = torch.ones(x.shape[-2], x.shape[-1], dtype=x.dtype, device=x.device)
    return torch.exp(-0.5 * ((x * x) @ ones_x + ones_y @ (y * y) - 2 * x @ y))


def kernel_lean(x, y):
    """The same with one product, its result overwritten."""
    scale = -0.5 / x.shape[-1] ** 0.5
    shape = *x.shape[:-1], y.shape[-2]
    x, y = x.flatten(0, 1), y.flatten(0, 1)
    norms_x, norms_y = (x * x).sum(-1, keepdim=True), (y * y).sum(-1).unsqueeze(-2)
    distances = torch.baddbmm(norms_y, x, y.transpose(-1, -2), alpha=-2).add_(norms_x)
    return distances.mul_(scale).exp_().view(shape)


class Inverse(torch.autograd.Function):
    """Newton-Raphson's X_20 from `start` B / |A|_1^2, B = A + ridge I, and the gradient -X^T G X^T."""

    @staticmethod
    def forward(ctx, a, start=2, ridge=0):
        alpha = start / a.abs().sum(-1).amax(-1)[..., None, None] ** 2
        if ridge:
            a = a + ridge * torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        x = alpha * a
        for _ in range(20):
            x = 2 * x - x @ a @ x
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return -x.transpose(-1, -2) @ gradient @ x.transpose(-1, -2), None, None


def inverse_softpp(a):
    """One alpha for the batch, halved until |I - alpha A^2|_1 <= 1.01."""
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    alpha, tries = 2 / a.sum(-1).max() ** 2, 0
    x = alpha * a
    norm = (eye - a @ x).abs().sum(-2).max()
    while norm > 1.01 and tries < 10:
        alpha, tries = alpha / 2, tries + 1
        x = alpha * a
        norm = (eye - a @ x).abs().sum(-2).max()
    for _ in range(20):
        x = 2 * x - x @ a @ x
    return x


def averages(x, m):
    b, h, n, d = x.shape
    return x.reshape(b, h, m, n // m, d).mean(3)


def soft(kernel, chain):
    def form(q, k, v, p):
        landmarks = averages(q, p["m"])
        x = Inverse.apply(kernel(landmarks, landmarks))
        return chain(kernel(q, landmarks), x, v)
    return form


def softpp(kernel, chain):
    def form(q, k, v, p):
        landmarks = averages(q, p["m"])
        a = kernel(landmarks, landmarks)
        root = a.sum(-1) ** -0.5
        return chain(kernel(q, landmarks), root[..., :, None] * inverse_softpp(a) * root[..., None, :], v)
    return form


def chain_published(p, x, v):
    return (p @ x) @ (p.transpose(-1, -2) @ v)


def chain_lean(p, x, v):
    return p @ (x @ (p.transpose(-1, -2) @ v))


def gaussian(kernel):
    return lambda q, k, v, p: kernel(q, k) @ v


# ---- Softmax ----

def softmax(q, k, v, p):
    return ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5).softmax(-1) @ v


def softmax_lean(q, k, v, p):
    """Scales the queries, not the weights."""
    return ((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)).softmax(-1) @ v


def softmax_fused(q, k, v, p):
    return F.scaled_dot_product_attention(q, k, v)


def linformer(q, k, v, p):
    k, v = torch.einsum("bhnd,nk->bhkd", k, p["e"][0, 0]), torch.einsum("bhnd,nk->bhkd", v, p["f"][0, 0])
    weights = (torch.einsum("bhnd,bhkd->bhnk", q, k) * q.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bhnk,bhkd->bhnd", weights, v)


def linformer_fused(q, k, v, p):
    return F.scaled_dot_product_attention(q, p["e"].transpose(-1, -2) @ k, p["f"].transpose(-1, -2) @ v)


def inverse_nystromformer(a):
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    z = 1 / a.sum(-2).max() * a.transpose(-1, -2)
    for _ in range(6):
        az = a @ z
        z = 0.25 * z @ (13 * eye - az @ (15 * eye - az @ (7 * eye - az)))
    return z


def nystromformer(q, k, v, p):
    scale = q.shape[-1] ** -0.25
    q, k = q * scale, k * scale
    landmarks_q, landmarks_k = averages(q, p["m"]), averages(k, p["m"])
    left = (q @ landmarks_k.transpose(-1, -2)).softmax(-1)
    a = (landmarks_q @ landmarks_k.transpose(-1, -2)).softmax(-1)
    right = (landmarks_q @ k.transpose(-1, -2)).softmax(-1)
    return (left @ inverse_nystromformer(a)) @ (right @ v)


def nystromformer_fused(q, k, v, p):
    """Both softmaxes over tokens by the fused call, and the product from the right."""
    landmarks_q, landmarks_k = averages(q, p["m"]), averages(k, p["m"])
    z = inverse_nystromformer((landmarks_q @ landmarks_k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1))
    return F.scaled_dot_product_attention(q, landmarks_k, z @ F.scaled_dot_product_attention(landmarks_q, k, v))


def lsh(q, k, v, p):
    """Reformer: rounds in one sequence, sorted by bucket, chunks looking one chunk back."""
    b, h, n, d = q.shape
    q, v = q.flatten(0, 1), v.flatten(0, 1)
    rotations = p["rotations"][0]  # rounds x d x buckets / 2
    rounds, buckets = rotations.shape[0], 2 * rotations.shape[-1]
    rotated = torch.einsum("btf,rfi->brti", q, rotations)
    hashes = torch.cat([rotated, -rotated], -1).argmax(-1)
    offsets = buckets * torch.arange(rounds, device=q.device)
    hashes = (hashes + offsets[None, :, None]).flatten(1)
    ticker = torch.arange(rounds * n, device=q.device).expand_as(hashes)
    order = (n * hashes + ticker % n).argsort(-1)
    undo = order.argsort(-1)
    place = order % n

    def chunks(x):
        return x.view(q.shape[0], -1, LSH_CHUNK, *x.shape[2:])

    def look_back(x):
        return torch.cat([x, torch.cat([x[:, -1:], x[:, :-1]], 1)], 2)

    def gather(x, indices):
        return x.gather(1, indices.unsqueeze(-1).expand(-1, -1, x.shape[-1]))

    queries, values, places = chunks(gather(q, place)), chunks(gather(v, place)), chunks(place)
    keys, values, others = look_back(F.normalize(queries, dim=-1)), look_back(values), look_back(places)
    dots = torch.einsum("bhie,bhje->bhij", queries, keys) * d ** -0.5
    dots = dots.masked_fill(places[:, :, :, None] == others[:, :, None, :], -5e4)
    total = torch.logsumexp(dots, -1, keepdim=True)
    outputs = torch.einsum("bhij,bhje->bhie", torch.exp(dots - total), values).flatten(1, 2)
    outputs = gather(outputs, undo).view(-1, rounds, n, d)
    logits = total.flatten(1).gather(1, undo).view(-1, rounds, n, 1)
    weights = torch.exp(logits - torch.logsumexp(logits, 1, keepdim=True))
    return (outputs * weights).sum(1).view(b, h, n, d)


# ---- Norms and features: lean ones divide what is d x d ----

def sima(q, k, v, p):
    q, k = F.normalize(q, p=1, dim=-2), F.normalize(k, p=1, dim=-2)
    if q.shape[-2] < q.shape[-1]:
        return (q @ k.transpose(-2, -1)) @ v
    return q @ (k.transpose(-2, -1) @ v)


def sima_lean(q, k, v, p):
    norms = q.abs().sum(-2, keepdim=True) * k.abs().sum(-2, keepdim=True)
    return q @ ((k.transpose(-2, -1) @ v) / norms.transpose(-2, -1))


def xnorm(q, k, v, p):
    def normal(x, dim):
        return x * p["gamma"] / torch.norm(x, 2, dim, True)
    return normal(q, -1) @ normal(k.transpose(-1, -2) @ v, -2)


def xnorm_lean(q, k, v, p):
    t = k.transpose(-1, -2) @ v
    t = t * (p["gamma"] ** 2 * (t * t).sum(-2, keepdim=True).rsqrt())
    return (q @ t) * (q * q).sum(-1, keepdim=True).rsqrt()


def xca(q, k, v, p):
    q, k, v = (x.transpose(-2, -1) for x in (q, k, v))
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    weights = ((q @ k.transpose(-2, -1)) * p["temperature"]).softmax(-1)
    return (weights @ v).transpose(-2, -1)


def xca_lean(q, k, v, p):
    norms_q, norms_k = ((x * x).sum(-2, keepdim=True).rsqrt() for x in (q, k))
    logits = (q.transpose(-2, -1) @ k) * (p["temperature"] * norms_q.transpose(-2, -1) * norms_k)
    return v @ logits.softmax(-1).transpose(-2, -1)


def efficient(q, k, v, p):
    q, k = q.softmax(-1), k.softmax(-2)
    return q @ (k.transpose(-1, -2) @ v)


def performer(q, k, v, p):
    def features(x, dims):
        scale, ratio = x.shape[-1] ** -0.25, p["projection"].shape[-2] ** -0.5
        w = p["projection"].expand(*x.shape[:2], -1, -1)
        logits = torch.einsum("...id,...jd->...ij", scale * x, w)
        norms = (x ** 2).sum(-1, keepdim=True) / 2.0 * scale ** 2
        return ratio * (torch.exp(logits - norms - torch.amax(logits, dims, keepdim=True)) + 1e-4)
    return averaged(features(q, -1), features(k, (-1, -2)), v)


def performer_lean(q, k, v, p):
    """Without the ratio, which the average divides out."""
    def features(x, dims):
        logits = x @ (p["projection"] * x.shape[-1] ** -0.25).transpose(-1, -2)
        norms = (x * x).sum(-1, keepdim=True) * (0.5 * x.shape[-1] ** -0.5)
        return (logits - (norms + logits.amax(dims, keepdim=True))).exp_() + 1e-4
    return averaged(features(q, -1), features(k, (-1, -2)), v)


def averaged(q, k, v):
    inverse = 1.0 / torch.einsum("...nd,...d->...n", q, k.sum(-2))
    context = torch.einsum("...nd,...ne->...de", k, v)
    return torch.einsum("...de,...nd,...n->...ne", context, q, inverse)


def rff(q, k, v, p):
    def features(x):
        u = (x * x.shape[-1] ** -0.25) @ p["projection"].transpose(-1, -2)
        return torch.cat([torch.cos(u), torch.sin(u)], -1) * p["projection"].shape[-2] ** -0.5
    q, k = features(q), features(k)
    return q @ (k.transpose(-1, -2) @ v)


def rff_lean(q, k, v, p):
    w = (p["projection"] * q.shape[-1] ** -0.25).transpose(-1, -2)
    q, k, v = q @ w, k @ w, v / w.shape[-1]
    return q.cos() @ (k.cos().transpose(-1, -2) @ v) + q.sin() @ (k.sin().transpose(-1, -2) @ v)


def elu(q, k, v, p):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    kv = torch.einsum("bhsd,bhsm->bhmd", k, v)
    z = 1 / (torch.einsum("bhld,bhd->bhl", q, k.sum(2)) + 1e-6)
    return torch.einsum("bhld,bhmd,bhl->bhlm", q, kv, z)


def cosformer(q, k, v, p):
    q, k = F.relu(q), F.relu(k)
    n = q.shape[-2]
    angles = math.pi / 2 * torch.arange(1, n + 1, device=q.device, dtype=q.dtype).reshape(-1, 1) / n
    q = torch.cat([q * torch.sin(angles), q * torch.cos(angles)], -1)
    k = torch.cat([k * torch.sin(angles), k * torch.cos(angles)], -1)
    kv = torch.einsum("...ld,...lm->...dm", k, v)
    z = 1 / torch.clamp_min(torch.einsum("...ld,...d->...l", q, k.sum(-2)), 1e-6)
    return torch.einsum("...ld,...dm,...l->...lm", q, kv, z)


# ---- Parameters: made in f64, and given to attnum ----

def normal(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def make_nothing(generator, shape, m):
    return {}


def make_projection(generator, shape, m):
    """floor(d ln d) rows, orthogonal in blocks of d, of the norms of normal ones."""
    d = shape[-1]
    rows = int(d * math.log(d))
    blocks = [torch.linalg.qr(normal(generator, d, d))[0].T for _ in range(-(-rows // d))]
    norms = normal(generator, rows, d).norm(dim=1, keepdim=True)
    return {"projection": (torch.cat(blocks)[:rows] * norms).reshape(1, 1, rows, d)}


def make_linformer(generator, shape, m):
    def uniform():
        return (2 * torch.rand(1, 1, shape[2], m, dtype=torch.float64, generator=generator) - 1) * m ** -0.5
    return {"e": uniform(), "f": uniform()}


def make_rotations(generator, shape, m):
    return {"rotations": normal(generator, 1, LSH_ROUNDS, shape[-1], shape[2] // LSH_CHUNK // 2)}


def make_heads(name):
    return lambda generator, shape, m: {name: 1 + torch.rand(1, shape[1], 1, 1, dtype=torch.float64,
                                                             generator=generator)}


def give_landmarks(library, desc, shape, p):
    desc.sampling.kind = library.constants["ATN_SAMPLING_WINDOW"]
    desc.sampling.stride = shape[2] // p["m"]
    if desc.dtype not in (library.dtype("f32"), library.dtype("f64")):  # what the fused passes need
        desc.distance = library.constants["ATN_DISTANCE_CLAMPED"]


def give_nystromformer(library, desc, shape, p):
    desc.nystromformer.landmarks = p["m"]


def give_chunk(library, desc, shape, p):
    desc.lsh.chunk = LSH_CHUNK


def give_nothing(library, desc, shape, p):
    pass


class Operator:
    """A variant and its forms; `rivals`: other operators, timed for comparison; `pairs`: every pair of tokens is
    looked at; `shared`: K = Q."""

    def __init__(self, name, variant, forms, make=make_nothing, give=give_nothing, rivals=None,
                 pairs=False, shared=False, landmarks=False):
        self.name, self.variant, self.forms, self.make, self.give = name, variant, forms, make, give
        self.rivals, self.pairs, self.shared, self.landmarks = rivals or {}, pairs, shared, landmarks

    def fits(self, n, m):
        if self.name == "lsh":
            return n % (2 * LSH_CHUNK) == 0
        return not self.landmarks or n % m == 0

    def describe(self, library, dtype, shape, p):
        """attnum's description, with the parameters where they are in memory."""
        desc = library.variant(self.name, self.variant, dtype)
        self.give(library, desc, shape, p)
        for key, value in p.items():
            if key != "m":
                setattr(getattr(desc, self.name), key, library.tensor(value.data_ptr(), dtype, *value.shape))
        return desc


OPERATORS = [
    Operator("soft", "paper", {"eager": soft(kernel_published, chain_published),
                               "lean": soft(kernel_lean, chain_lean)},
             give=give_landmarks, rivals={"softmax-fused": softmax_fused}, shared=True, landmarks=True),
    Operator("softpp", "code", {"eager": softpp(kernel_published, chain_published),
                                "lean": softpp(kernel_lean, chain_lean)},
             give=give_landmarks, shared=True, landmarks=True),
    Operator("gaussian", "exact", {"eager": gaussian(kernel_published), "lean": gaussian(kernel_lean)},
             pairs=True),
    Operator("softmax", "attention", {"eager": softmax, "lean": softmax_lean, "fused": softmax_fused}, pairs=True),
    Operator("sima", "paper", {"eager": sima, "lean": sima_lean}),
    Operator("xnorm", "paper", {"eager": xnorm, "lean": xnorm_lean}, make_heads("gamma")),
    Operator("linformer", "projected", {"eager": linformer, "fused": linformer_fused}, make_linformer, landmarks=True),
    Operator("performer", "favor", {"eager": performer, "lean": performer_lean}, make_projection),
    Operator("rff", "fourier", {"eager": rff, "lean": rff_lean}, make_projection),
    Operator("nystromformer", "original", {"eager": nystromformer, "fused": nystromformer_fused},
             give=give_nystromformer, landmarks=True),
    Operator("xca", "code", {"eager": xca, "lean": xca_lean}, make_heads("temperature")),
    Operator("efficient", "paper", {"eager": efficient}),
    Operator("elu", "stable", {"eager": elu}),
    Operator("cosformer", "1d", {"eager": cosformer}),
    Operator("lsh", "reformer", {"eager": lsh}, make_rotations, give_chunk, shared=True),
]
