#!/usr/bin/env python3
"""Writes gla.json: linear attention with a gate per key dimension, one token after the other, by PyTorch in float64.

    python make_gla.py            # rewrites gla.json beside this script
    python make_gla.py NAIVE      # also holds the recurrence to the authors' own: NAIVE is fla/ops/gla/naive.py of
                                  # the package fla-core

Layout and conventions are those of make_ops.py. Gates are sigmoid(x·wᵀ + bias)^(1/16), E of them for each token and
key-value head. Before it writes, the script holds the recurrence to the sum over all pairs of tokens.
"""
import importlib.util
import json
import os
import sys

import torch

from make_ops import case, leaf, wave


def gla(q, k, v, log_alpha, doc_start):
    """q [B, T, H, E], k, v and log_alpha [B, T, K, E] -> [B, T, H, E] before the norm."""
    B, T, H, E = q.shape
    group = H // k.shape[2]
    rows = []
    for b in range(B):
        S, out = None, []
        for t in range(T):
            if t == doc_start[b, t]:
                S = torch.zeros(k.shape[2], E, E, dtype=q.dtype)
            S = log_alpha[b, t].exp()[:, :, None] * S + torch.einsum("hk,he->hke", k[b, t], v[b, t])
            out.append(torch.einsum("hk,hke->he", q[b, t] * E**-0.5, S.repeat_interleave(group, 0)))
        rows.append(torch.stack(out))
    return torch.stack(rows)


def pairs(q, k, v, log_alpha, doc_start):
    """The same without a state."""
    T, E, group = q.shape[1], q.shape[3], q.shape[2] // k.shape[2]
    k, v, b = (x.repeat_interleave(group, 2) for x in (k, v, log_alpha.cumsum(1)))
    at = torch.arange(T)
    seen = (at[None, :] <= at[:, None]) & (at[None, None, :] >= doc_start[:, :, None])
    fade = (b[:, :, None] - b[:, None]).exp() * seen[..., None, None]
    return torch.einsum("bihd,bjhd,bijhd,bjhe->bihe", q * E**-0.5, k, fade, v)


def authors(path, q, k, v, log_alpha):
    """The recurrence of flash-linear-attention, in float64, for one document a row."""
    spec = importlib.util.spec_from_file_location("naive", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.Tensor.float, torch.float32 = torch.Tensor.double, torch.float64
    group = q.shape[2] // k.shape[2]
    return module.naive_recurrent_gla(q, *(x.repeat_interleave(group, 2) for x in (k, v, log_alpha)))[0]


def cases():
    documents = torch.tensor([[0, 0, 0, 3, 3, 5, 5, 5, 5], [0] * 9])
    q, k, v = leaf(wave((2, 9, 4, 5), 1.0, 0.7, 2.0)), leaf(wave((2, 9, 2, 5), 0.5, 1.3, 2.0)), leaf(wave((2, 9, 2, 5), 0.2, 0.37))
    x, w, bias = leaf(wave((18, 3), 0.4, 0.6, 9.0)), leaf(wave((10, 3), 0.7, 1.1, 4.0)), leaf(wave((10,), 1.0, 0.9, 1.0, 1.5))
    log_alpha = torch.nn.functional.logsigmoid(x @ w.T + bias).reshape(2, 9, 2, 5) / 16
    o = gla(q, k, v, log_alpha, documents)
    far = (pairs(q, k, v, log_alpha, documents) - o).abs().max().item()
    print(f"pairs: within {far:.1e}")
    assert far < 1e-12
    if len(sys.argv) > 1:
        whole = torch.zeros_like(documents)
        far = (authors(sys.argv[1], q, k, v, log_alpha) - gla(q, k, v, log_alpha, whole)).abs().max().item()
        print(f"flash-linear-attention: within {far:.1e}")
        assert far < 1e-12
    y = o * torch.rsqrt((o * o).mean(-1, keepdim=True) + 1e-6)
    inputs = {"q": q, "k": k, "v": v, "x": x, "w": w, "bias": bias}
    attrs = {"q_heads": 4, "kv_heads": 2, "head_dim": 5}
    yield case("gla", "gla", attrs, inputs, {"doc_start": documents}, {"y": y}, {"dy": wave(y.shape, 0.9, 1.9)})


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gla.json")
    with open(path, "w") as f:
        json.dump({"about": __doc__.splitlines()[0], "cases": list(cases())}, f)
        f.write("\n")
