#!/usr/bin/env python3
"""Writes delta_rule.json: the delta rule, one token after the other, by PyTorch in float64 with its gradients.

    python make_delta_rule.py            # rewrites delta_rule.json beside this script

Layout and conventions are those of make_ops.py. Gates are sigmoid(x·wᵀ + bias): β, and α if gated, for each token and
key-value head. Before it writes, the script holds the recurrence to transformers' chunked and recurrent gated delta rule
(modeling_qwen3_next.py), where the installed version has it; those compute in float32.
"""
import json
import os

import torch

from make_ops import case, leaf, wave


def unit(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def delta_rule(q, k, v, beta, alpha, doc_start):
    """q [B, T, H, E], k and v [B, T, K, E], beta and alpha [B, T, K] -> [B, T, H, E] before the norm."""
    B, T, H, E = q.shape
    group = H // k.shape[2]
    q, k = unit(q), unit(k)
    rows = []
    for b in range(B):
        S, out = None, []
        for t in range(T):
            if t == doc_start[b, t]:
                S = torch.zeros(k.shape[2], E, E, dtype=q.dtype)
            S = alpha[b, t][:, None, None] * S
            kept = torch.einsum("hke,hk->he", S, k[b, t])
            S = S + torch.einsum("hk,he->hke", k[b, t], beta[b, t][:, None] * (v[b, t] - kept))
            out.append(torch.einsum("hk,hke->he", q[b, t], S.repeat_interleave(group, 0)))
        rows.append(torch.stack(out))
    return torch.stack(rows)


def witness(q, k, v, beta, alpha, o):
    """Holds o to transformers, whose queries have a scale."""
    from transformers.models.qwen3_next import modeling_qwen3_next as m

    group = q.shape[2] // k.shape[2]
    k, v, beta, alpha = (x.repeat_interleave(group, 2) for x in (k, v, beta, alpha))
    for f in (m.torch_chunk_gated_delta_rule, m.torch_recurrent_gated_delta_rule):
        got, _ = f(q, k, v, g=alpha.log(), beta=beta, initial_state=None, output_final_state=False,
                   use_qk_l2norm_in_kernel=True)
        far = (got.double() * q.shape[-1] ** 0.5 - o).abs().max().item()
        print(f"{f.__name__}: within {far:.1e}")
        assert far < 1e-5


def cases():
    documents = torch.tensor([[0, 0, 0, 3, 3, 5, 5, 5, 5], [0] * 9])
    for gated in (False, True):
        q, k, v = leaf(wave((2, 9, 4, 5), 1.0, 0.7, 2.0)), leaf(wave((2, 9, 2, 5), 0.5, 1.3, 2.0)), leaf(wave((2, 9, 2, 5), 0.2, 0.37))
        width = 2 if gated else 1
        x, w, bias = leaf(wave((18, 3), 0.4, 0.6)), leaf(wave((2 * width, 3), 0.7, 1.1)), leaf(wave((2 * width,), 1.0, 0.9, 1.0, 1.5))
        gates = torch.sigmoid(x @ w.T + bias).reshape(2, 9, 2, width)
        beta, alpha = gates[..., 0], gates[..., 1] if gated else torch.ones(2, 9, 2, dtype=torch.float64)
        with torch.no_grad():
            witness(q, k, v, beta, alpha, delta_rule(q, k, v, beta, alpha, torch.zeros_like(documents)))
        o = delta_rule(q, k, v, beta, alpha, documents)
        y = o * torch.rsqrt((o * o).mean(-1, keepdim=True) + 1e-6)
        inputs = {"q": q, "k": k, "v": v, "x": x, "w": w, "bias": bias}
        attrs = {"q_heads": 4, "kv_heads": 2, "head_dim": 5}
        yield case("gated" if gated else "plain", "delta_rule", attrs, inputs, {"doc_start": documents}, {"y": y}, {"dy": wave(y.shape, 0.9, 1.9)})


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "delta_rule.json")
    with open(path, "w") as f:
        json.dump({"about": __doc__.splitlines()[0], "cases": list(cases())}, f)
        f.write("\n")
