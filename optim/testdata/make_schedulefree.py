#!/usr/bin/env python3
"""Writes schedulefree.json: ten steps of the authors' AdamWScheduleFreeReference (package schedulefree), in float64.

    python make_schedulefree.py   # rewrites schedulefree.json beside this script

The parameter is a 4x6 tensor, row major. With i the flat index and t = 1..10 the step,

    w_0[i]  = sin(1 + 0.7*i)                 g_t[i] = sin(0.3*t + 1.1*i) * (1 + i%5)

both rounded to three decimals. A case holds y, at which the next gradient is taken, and x, the average, of every step.
"""
import importlib.metadata
import json
import math
import os

import torch
from schedulefree import AdamWScheduleFreeReference

STEPS, SHAPE = 10, (4, 6)
N = math.prod(SHAPE)

CASES = [
    ("no warmup", dict(lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, warmup_steps=0)),
    ("warmup", dict(lr=0.02, betas=(0.95, 0.99), eps=1e-8, weight_decay=0.5, warmup_steps=6)),
    ("warmup beyond the end, no decay", dict(lr=0.05, betas=(0.8, 0.999), eps=1e-3, weight_decay=0.0, warmup_steps=20)),
]


def start():
    return [round(math.sin(1 + 0.7 * i), 3) for i in range(N)]


def gradient(t):
    return [round(math.sin(0.3 * t + 1.1 * i) * (1 + i % 5), 3) for i in range(N)]


def run(constants):
    w = torch.tensor(start(), dtype=torch.float64).reshape(SHAPE).requires_grad_(True)
    opt = AdamWScheduleFreeReference([w], **constants)
    opt.train()
    y, x = [], []
    for t in range(1, STEPS + 1):
        w.grad = torch.tensor(gradient(t), dtype=torch.float64).reshape(SHAPE)
        opt.step()
        y.append(w.detach().reshape(-1).tolist())
        opt.eval()
        x.append(w.detach().reshape(-1).tolist())
        opt.train()
    return y, x


def main():
    out = {
        "about": f"made by make_schedulefree.py with torch {torch.__version__.split('+')[0]} and schedulefree "
                 f"{importlib.metadata.version('schedulefree')}; formulas are described there",
        "shape": list(SHAPE), "start": start(), "gradients": [gradient(t) for t in range(1, STEPS + 1)],
    }
    cases = []
    for name, c in CASES:
        y, x = run(c)
        beta1, beta2 = c["betas"]
        cases.append(json.dumps({
            "name": name, "lr": c["lr"], "beta1": beta1, "beta2": beta2, "eps": c["eps"],
            "weight_decay": c["weight_decay"], "warmup": c["warmup_steps"], "y": y, "x": x,
        }))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schedulefree.json")
    with open(path, "w") as f:
        f.write(json.dumps(out)[:-1] + ',\n"cases": [\n' + ",\n".join(cases) + "\n]}\n")


if __name__ == "__main__":
    main()
