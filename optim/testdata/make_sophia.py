#!/usr/bin/env python3
"""Writes sophia.json: ten steps of the original SophiaG, with a curvature update after every second one.

    PYTHONPATH=DIR python make_sophia.py        # rewrites sophia.json beside this script

DIR holds sophia.py of github.com/Liuhong99/Sophia, as published. With i the flat index of 15 weights and t = 1..10 the
step, all rounded to three decimals, the curvature's gradient of the mean loss being ghat,

    w_0[i] = sin(1 + 0.7*i)      g_t[i] = sin(0.3*t + 1.1*i)      ghat_t[i] = 0.05*sin(0.5*t + 0.9*i)
"""
import json
import math
import os

import torch
from sophia import SophiaG

STEPS, N, EVERY, BATCH = 10, 15, 2, 1000

# name, hyper-parameters
SETS = [
    ("reference", dict(lr=0.01, betas=(0.965, 0.99), rho=0.04, weight_decay=0.1)),
    ("mostly-unclipped", dict(lr=0.05, betas=(0.9, 0.95), rho=2.0, weight_decay=0.0)),
]


def start():
    return [round(math.sin(1 + 0.7 * i), 3) for i in range(N)]


def gradient(t):
    return [round(math.sin(0.3 * t + 1.1 * i), 3) for i in range(N)]


def sampled(t):
    return [round(0.05 * math.sin(0.5 * t + 0.9 * i), 3) for i in range(N)]


def trajectory(hyper):
    w = torch.tensor(start(), dtype=torch.float64).requires_grad_(True)
    opt = SophiaG([w], **hyper)
    weights = []
    for t in range(1, STEPS + 1):
        w.grad = torch.tensor(gradient(t), dtype=torch.float64)
        opt.step(bs=BATCH)
        if t % EVERY == 0:
            w.grad = torch.tensor(sampled(t), dtype=torch.float64)
            opt.update_hessian()
        weights.append(w.detach().tolist())
    return weights, opt.state[w]["exp_avg"].tolist(), opt.state[w]["hessian"].tolist()


def main():
    sets = []
    for name, hyper in SETS:
        weights, m, h = trajectory(hyper)
        sets.append({"name": name, "lr": hyper["lr"], "beta1": hyper["betas"][0], "beta2": hyper["betas"][1],
                     "rho": hyper["rho"], "weight_decay": hyper["weight_decay"], "weights": weights, "m": m, "h": h})
    out = {
        "about": f"made by make_sophia.py with PyTorch {torch.__version__.split('+')[0]}; what is in it is described there",
        "every": EVERY, "batch": BATCH, "start": start(), "gradients": [gradient(t) for t in range(1, STEPS + 1)],
        "sampled": [sampled(t) for t in range(1, STEPS + 1)],
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sophia.json")
    with open(path, "w") as f:
        f.write(json.dumps(out)[:-1] + ',\n"sets": [\n' + ",\n".join(json.dumps(s) for s in sets) + "\n]}\n")


if __name__ == "__main__":
    main()
