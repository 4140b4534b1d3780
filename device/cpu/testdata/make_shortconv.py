#!/usr/bin/env python3
"""Writes shortconv.json: causal depthwise convolutions with SiLU by torch in float64, with their gradients.

    python make_shortconv.py   # rewrites it beside this script (needs torch)

Each case is a row of tokens [T, C] with its documents, which are convolved one by one as the short convolutions of
Gated DeltaNet's reference code are: torch.nn.functional.conv1d with one group for each column, weights [C, 1, k], k-1
zeros before the document, then SiLU. The gradients are those of sum(out * dout).
"""
import json
import os

import torch
from torch.nn import functional as F

torch.manual_seed(1)
torch.set_num_threads(1)
cases = []
for k, columns, documents in [(4, 5, [7]), (4, 3, [2, 1, 6]), (1, 2, [3]), (3, 8, [20, 5])]:
    x, dout = (torch.randn(sum(documents), columns, dtype=torch.float64) for _ in range(2))
    taps = torch.randn(columns, 1, k, dtype=torch.float64)
    x.requires_grad_(), taps.requires_grad_()
    parts = []
    for part in x.split(documents):
        z = F.conv1d(part.T[None], taps, padding=k - 1, groups=columns)[0, :, :len(part)]
        parts.append(F.silu(z).T)
    out = torch.cat(parts)
    (out * dout).sum().backward()
    start = [sum(documents[:i]) for i, n in enumerate(documents) for _ in range(n)]
    flat = {"x": x, "dout": dout, "taps": taps, "out": out, "dx": x.grad, "dtaps": taps.grad}
    cases.append({"k": k, "start": start} | {name: v.detach().flatten().tolist() for name, v in flat.items()})

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shortconv.json"), "w") as f:
    json.dump(cases, f)
    f.write("\n")
