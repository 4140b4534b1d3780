#!/usr/bin/env python3
"""Writes linear_attention.json: linear attention, one token after the other, by PyTorch in float64 with its gradients.

    python make_linear_attention.py            # rewrites linear_attention.json beside this script

Layout and conventions are those of make_ops.py. Gates are sigmoid(x·wᵀ + bias), one for each token and key-value head.
"""
import json
import os

import torch

from make_ops import case, leaf, wave


def linear_attention(q, k, v, gate, doc_start):
    """q [B, T, H, E], k and v [B, T, K, E], gate [B, T, K] -> [B, T, H, E]."""
    B, T, H, E = q.shape
    group = H // k.shape[2]
    q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
    rows = []
    for b in range(B):
        S, z, out = None, None, []
        for t in range(T):
            kv = torch.einsum("kd,ke->kde", k[b, t], v[b, t])
            if t == doc_start[b, t]:
                S, z = kv, k[b, t]
            else:
                g = gate[b, t]
                S, z = g[:, None, None] * S + kv, g[:, None] * z + k[b, t]
            num = torch.einsum("hd,hde->he", q[b, t], S.repeat_interleave(group, 0))
            den = torch.einsum("hd,hd->h", q[b, t], z.repeat_interleave(group, 0)) + 1e-6
            out.append(num / den[:, None])
        rows.append(torch.stack(out))
    return torch.stack(rows)


def cases():
    for gated in (False, True):
        for documents in (False, True):
            q, k, v = leaf(wave((2, 9, 4, 5), 1.0, 0.7, 2.0)), leaf(wave((2, 9, 2, 5), 0.5, 1.3, 2.0)), leaf(wave((2, 9, 2, 5), 0.2, 0.37))
            doc_start = torch.tensor([[0, 0, 0, 3, 3, 5, 5, 5, 5], [0] * 9]) if documents else torch.zeros(2, 9, dtype=torch.int64)
            inputs, gate = {"q": q, "k": k, "v": v}, torch.ones(2, 9, 2)
            if gated:
                x, w, bias = leaf(wave((18, 3), 0.4, 0.6)), leaf(wave((2, 3), 0.7, 1.1)), leaf(wave((2,), 1.0, 0.9, 1.0, 1.5))
                inputs.update({"x": x, "w": w, "bias": bias})
                gate = torch.sigmoid(x @ w.T + bias).reshape(2, 9, 2)
            y = linear_attention(q, k, v, gate, doc_start)
            name = ("gated" if gated else "plain") + ("/documents" if documents else "")
            attrs = {"q_heads": 4, "kv_heads": 2, "head_dim": 5}
            yield case(name, "linear_attention", attrs, inputs, {"doc_start": doc_start}, {"y": y}, {"dy": wave(y.shape, 0.9, 1.9)})


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "linear_attention.json")
    with open(path, "w") as f:
        json.dump({"about": __doc__.splitlines()[0], "cases": list(cases())}, f)
        f.write("\n")
