#!/usr/bin/env python3
"""Writes adamw.json: ten steps of torch.optim.AdamW and clip coefficients of torch.nn.utils.clip_grad_norm_.

    python make_adamw.py          # rewrites adamw.json beside this script

The parameter is a 3x5 tensor, row major. With i the flat index and t = 1..10 the step,

    w_0[i]  = sin(1 + 0.7*i)                 g_t[i] = sin(0.3*t + 1.1*i) * scale

both rounded to three decimals (gradients before the multiplication by scale) so that the numbers are short;
they are stored, too. Each trajectory holds the weights after every step, and the two moments after the last.
"""
import json
import math
import os

import torch

STEPS, SHAPE = 10, (3, 5)
N = math.prod(SHAPE)

# name, gradient scale, hyper-parameters
SETS = [
    ("llm", 1.0, dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)),
    ("no-decay", 1.0, dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)),
    ("torch-defaults", 1.0, dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2)),
    ("large-decay-large-eps", 1.0, dict(lr=0.05, betas=(0.8, 0.99), eps=1e-3, weight_decay=1.0)),
    ("gradients-near-eps", 1e-7, dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)),
    ("zero-gradient", 0.0, dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)),
]


def start():
    return [round(math.sin(1 + 0.7 * i), 3) for i in range(N)]


def gradient(t):
    return [round(math.sin(0.3 * t + 1.1 * i), 3) for i in range(N)]


def trajectory(scale, hyper, dtype):
    w = torch.tensor(start(), dtype=dtype).reshape(SHAPE).requires_grad_(True)
    opt = torch.optim.AdamW([w], foreach=False, **hyper)
    weights = []
    for t in range(1, STEPS + 1):
        w.grad = (torch.tensor(gradient(t), dtype=dtype) * scale).reshape(SHAPE)
        opt.step()
        weights.append(w.detach().reshape(-1).tolist())
    state = opt.state[w]
    return {"weights": weights, "m": state["exp_avg"].reshape(-1).tolist(), "v": state["exp_avg_sq"].reshape(-1).tolist()}


def adamw_set(name, scale, hyper):
    return {
        "name": name, "grad_scale": scale, "lr": hyper["lr"], "beta1": hyper["betas"][0], "beta2": hyper["betas"][1],
        "eps": hyper["eps"], "weight_decay": hyper["weight_decay"],
        "float64": trajectory(scale, hyper, torch.float64), "float32": trajectory(scale, hyper, torch.float32),
    }


def clip_case(name, max_norm, tensors):
    """total = L2 norm over all tensors; every gradient is multiplied by min(1, max_norm / (total + 1e-6))."""
    params = []
    for values in tensors:
        p = torch.zeros(len(values), dtype=torch.float64, requires_grad=True)
        p.grad = torch.tensor(values, dtype=torch.float64)
        params.append(p)
    total = torch.nn.utils.clip_grad_norm_(params, max_norm).item()
    clipped = [p.grad.tolist() for p in params]
    return {
        "name": name, "max_norm": max_norm, "grads": tensors, "total_norm": total,
        "coefficient": min(1.0, max_norm / (total + 1e-6)), "clipped": clipped,
    }


def main():
    clips = [
        clip_case("above", 1.0, [gradient(1), gradient(2)[:7]]),
        clip_case("below", 1.0, [[g * 0.01 for g in gradient(1)], [0.02, -0.03]]),
        clip_case("exactly-at", 5.0, [[3.0], [4.0]]),
        clip_case("zero", 1.0, [[0.0, 0.0], [0.0]]),
        clip_case("tiny-max", 1e-3, [gradient(3)]),
    ]
    out = {
        "about": f"made by make_adamw.py with PyTorch {torch.__version__.split('+')[0]}; formulas are described there",
        "shape": list(SHAPE), "steps": STEPS, "start": start(), "gradients": [gradient(t) for t in range(1, STEPS + 1)],
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "adamw.json")
    with open(path, "w") as f:
        f.write(json.dumps(out)[:-1] + ',\n"sets": [\n')
        f.write(",\n".join(json.dumps(adamw_set(*s)) for s in SETS))
        f.write('\n],\n"clips": [\n' + ",\n".join(json.dumps(c) for c in clips) + "\n]}\n")


if __name__ == "__main__":
    main()
