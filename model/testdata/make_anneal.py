"""Writes anneal.json: one forward and backward pass of a model of the family anneal in float64, for anneal_test.go.

The model is written here a second time, in PyTorch and plainly: two rows of two documents each, grouped-query attention with
rotary positions (half layout) that begin anew in each document. Element i of the n-th parameter, in the order of the fixture, is

    round(0.3 * sin(0.7*i + 1.3*n), 3) + offset

with offset 1 for the gains of norms and 0 otherwise. The loss is the sum over tokens of the cross-entropy.

    python make_anneal.py     (needs torch)
"""

import json
import math
import os

import torch
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
V, T, D, L, H, K, E, FFN, EPS, CAP = 13, 10, 12, 3, 4, 2, 4, 20, 1e-5, 4.0
SPLIT = 4  # where the second document of a row begins


def shapes():
    """Name and shape of every parameter, in the order of the fixture."""
    yield "embed", (V, D)
    for i in range(L):
        at = f"layers.{i}."
        yield at + "mix", (2,)
        yield at + "attention_norm", (D,)
        yield at + "attention.qkv", ((H + 2 * K) * E, D)
        yield at + "attention.out", (D, H * E)
        yield at + "attention.q_norm", (E,)
        yield at + "attention.k_norm", (E,)
        if (L - 1 - i) % 2 == 0:
            yield at + "attention.values", (V, K * E)
            yield at + "attention.value_weight", (1,)
        yield at + "mlp_norm", (D,)
        yield at + "mlp.up", (FFN, D)
        yield at + "mlp.down", (D, FFN)
    yield "norm", (D,)


def fill(n, name, shape):
    offset = 1.0 if name.endswith("norm") else 0.0
    x = [round(0.3 * math.sin(0.7 * i + 1.3 * n), 3) + offset for i in range(math.prod(shape))]
    return torch.tensor(x).reshape(shape).requires_grad_()


def rope(x, pos):
    """x [B, T, heads, E], pos [T]."""
    angle = pos[:, None, None] * 10000.0 ** (-torch.arange(E // 2) * 2.0 / E)
    a, b = x[..., : E // 2], x[..., E // 2 :]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def attention(p, at, h, tokens):
    b = h.shape[0]
    q, k, v = (h @ p[at + "attention.qkv"].T).split([H * E, K * E, K * E], -1)  # [B, T, …]
    if at + "attention.values" in p:
        v = v + p[at + "attention.value_weight"] * p[at + "attention.values"][tokens]
    q, k, v = q.reshape(b, T, H, E), k.reshape(b, T, K, E), v.reshape(b, T, K, E)
    position = torch.tensor([t if t < SPLIT else t - SPLIT for t in range(T)], dtype=torch.float64)
    q = rope(F.rms_norm(q, (E,), p[at + "attention.q_norm"], EPS), position)
    k = rope(F.rms_norm(k, (E,), p[at + "attention.k_norm"], EPS), position)
    k, v = k.repeat_interleave(H // K, 2), v.repeat_interleave(H // K, 2)
    t = torch.arange(T)
    seen = (t[:, None] >= t) & ((t[:, None] >= SPLIT) == (t >= SPLIT))
    scores = torch.einsum("bihe,bjhe->bhij", q, k) / math.sqrt(E)
    a = scores.masked_fill(~seen, -math.inf).softmax(-1)
    return torch.einsum("bhij,bjhe->bihe", a, v).reshape(b, T, H * E)


def forward(p, tokens):
    """Logits [B, T, V]."""
    x = first = p["embed"][tokens]  # [B, T, D]
    for i in range(L):
        at = f"layers.{i}."
        x = p[at + "mix"][0] * x + p[at + "mix"][1] * first
        x = x + attention(p, at, F.rms_norm(x, (D,), p[at + "attention_norm"], EPS), tokens) @ p[at + "attention.out"].T
        up = F.rms_norm(x, (D,), p[at + "mlp_norm"], EPS) @ p[at + "mlp.up"].T
        x = x + F.relu(up).square() @ p[at + "mlp.down"].T
    logits = F.rms_norm(x, (D,), p["norm"], EPS) @ p["embed"].T
    return CAP * torch.tanh(logits / CAP)


def main():
    p = {name: fill(n, name, shape) for n, (name, shape) in enumerate(shapes())}
    tokens = torch.tensor([[(3 * r + 5 * t + t * t) % V for t in range(T)] for r in range(2)])
    targets = torch.tensor([[(7 * r + 2 * t + 1) % V for t in range(T)] for r in range(2)])
    logits = forward(p, tokens)
    loss = F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), reduction="sum")
    loss.backward()
    fixture = {
        "about": f"made by make_anneal.py with PyTorch {torch.__version__.split('+')[0]}, float64",
        "tokens": tokens.tolist(), "targets": targets.tolist(), "loss": loss.item(), "logits": logits.detach().reshape(-1).tolist(),
        "grads": [{"name": name, "grad": x.grad.reshape(-1).tolist()} for name, x in p.items()],
    }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "anneal.json"), "w") as f:
        json.dump(fixture, f)
        f.write("\n")


if __name__ == "__main__":
    main()
