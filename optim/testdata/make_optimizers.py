#!/usr/bin/env python3
"""Writes optimizers.json: ten steps of each optimizer by its original implementation, in float64.

    python make_optimizers.py     # rewrites optimizers.json beside this script

The originals: torch.optim (SGD, Adam, Adafactor), transformers (Adafactor), lion_pytorch, bitsandbytes (AdEMAMix in its
reference form). Cautious decay has no packaged original: it is the paper's formula (arXiv 2510.12402) around
torch.optim.AdamW without decay.

The parameter is a 4x6 tensor, row major, or its elements as a vector. With i the flat index and t = 1..10 the step,

    w_0[i]  = sin(1 + 0.7*i)                 g_t[i] = sin(0.3*t + 1.1*i) * (1 + i%5)

both rounded to three decimals. A case holds the weights after every step.
"""
import json
import math
import os

import bitsandbytes
import lion_pytorch
import torch
import transformers
from bitsandbytes.optim.ademamix import _ReferenceAdEMAMix
from transformers.optimization import Adafactor as HFAdafactor

STEPS, SHAPE = 10, (4, 6)
N = math.prod(SHAPE)


def start():
    return [round(math.sin(1 + 0.7 * i), 3) for i in range(N)]


def gradient(t):
    return [round(math.sin(0.3 * t + 1.1 * i) * (1 + i % 5), 3) for i in range(N)]


def run(make, shape=SHAPE, dtype=torch.float64):
    w = torch.tensor(start(), dtype=dtype).reshape(shape).requires_grad_(True)
    opt = make([w])
    weights = []
    for t in range(1, STEPS + 1):
        w.grad = torch.tensor(gradient(t), dtype=dtype).reshape(shape)
        opt.step()
        weights.append(w.detach().reshape(-1).tolist())
    return weights


class CautiousAdamW:
    """w <- w - lr*(u + wd*w*[u*w >= 0]), where -lr*u is the step that AdamW makes without decay."""

    def __init__(self, params, lr, betas, eps, weight_decay):
        (self.w,) = params
        self.lr, self.weight_decay = lr, weight_decay
        self.inner = torch.optim.AdamW(params, lr=lr, betas=betas, eps=eps, weight_decay=0, foreach=False)

    def step(self):
        before = self.w.detach().clone()
        self.inner.step()
        with torch.no_grad():
            u = (before - self.w) / self.lr
            self.w -= self.lr * self.weight_decay * before * (u * before >= 0)


def sgd(lr, momentum=0.0, dampening=0.0, nesterov=False, weight_decay=0.0):
    c = dict(lr=lr, momentum=momentum, dampening=dampening, nesterov=nesterov, weight_decay=weight_decay)
    return c, run(lambda p: torch.optim.SGD(p, foreach=False, **c))


def adam(lr, beta1, beta2, eps, weight_decay):
    c = dict(lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay)
    make = lambda p: torch.optim.Adam(p, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, foreach=False)
    return c, run(make)


def cautious(lr, beta1, beta2, eps, weight_decay):
    c = dict(lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay)
    return c, run(lambda p: CautiousAdamW(p, lr, (beta1, beta2), eps, weight_decay))


def lion(lr, beta1, beta2, weight_decay):
    c = dict(lr=lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay)
    return c, run(lambda p: lion_pytorch.Lion(p, lr=lr, betas=(beta1, beta2), weight_decay=weight_decay))


def ademamix(lr, beta1, beta2, beta3, alpha, weight_decay, ramp):
    c = dict(lr=lr, beta1=beta1, beta2=beta2, beta3=beta3, alpha=alpha, eps=1e-8, weight_decay=weight_decay, ramp=ramp)
    make = lambda p: _ReferenceAdEMAMix(p, lr=lr, betas=(beta1, beta2, beta3), alpha=alpha, eps=1e-8,
                                        weight_decay=weight_decay, t_alpha=ramp or None, t_beta3=ramp or None)
    return c, run(make)


def torch_adafactor(lr, weight_decay, shape=SHAPE):
    c = dict(lr=lr, weight_decay=weight_decay, relative_step=True, vector=len(shape) == 1)
    return c, run(lambda p: torch.optim.Adafactor(p, lr=lr, weight_decay=weight_decay, foreach=False), shape)


def hf_adafactor(lr=None, beta1=None, scale=True, shape=SHAPE):
    c = dict(lr=lr or 1e-2, relative_step=lr is None, unscaled=not scale, beta1=beta1 or 0.0, vector=len(shape) == 1)
    make = lambda p: HFAdafactor(p, lr=lr, beta1=beta1, relative_step=lr is None, scale_parameter=scale, warmup_init=False)
    return c, run(make, shape)


CASES = [
    ("sgd", "torch: plain", sgd(0.1)),
    ("sgd", "torch: decay", sgd(0.1, weight_decay=0.1)),
    ("sgd", "torch: momentum", sgd(0.05, 0.9)),
    ("sgd", "torch: momentum and decay", sgd(0.05, 0.9, weight_decay=0.1)),
    ("sgd", "torch: dampening", sgd(0.05, 0.9, dampening=0.3)),
    ("sgd", "torch: nesterov", sgd(0.05, 0.9, nesterov=True, weight_decay=0.01)),
    ("adam", "torch: no decay", adam(0.01, 0.9, 0.95, 1e-8, 0.0)),
    ("adam", "torch: coupled decay", adam(0.01, 0.9, 0.999, 1e-8, 0.1)),
    ("cautious", "paper: adamw", cautious(0.01, 0.9, 0.95, 1e-8, 0.5)),
    ("lion", "lion_pytorch: paper's betas", lion(0.01, 0.9, 0.99, 0.1)),
    ("lion", "lion_pytorch: language models", lion(0.001, 0.95, 0.98, 1.0)),
    ("ademamix", "bitsandbytes: constant", ademamix(0.01, 0.9, 0.999, 0.9999, 5.0, 0.1, 0)),
    ("ademamix", "bitsandbytes: scheduled", ademamix(0.01, 0.9, 0.999, 0.9999, 8.0, 0.1, 7)),
    ("adafactor", "torch: matrix", torch_adafactor(1e-2, 0.0)),
    ("adafactor", "torch: decay and a high rate", torch_adafactor(0.5, 0.1)),
    ("adafactor", "torch: vector", torch_adafactor(1e-2, 0.0, (N,))),
    ("adafactor", "transformers: relative step", hf_adafactor()),
    ("adafactor", "transformers: momentum", hf_adafactor(beta1=0.9)),
    ("adafactor", "transformers: external rate", hf_adafactor(lr=0.02)),
    ("adafactor", "transformers: external rate, not scaled", hf_adafactor(lr=0.02, scale=False)),
    ("adafactor", "transformers: vector with momentum", hf_adafactor(beta1=0.9, shape=(N,))),
]


def main():
    versions = [f"{m.__name__} {m.__version__.split('+')[0]}" for m in (torch, transformers, bitsandbytes)]
    out = {
        "about": f"made by make_optimizers.py with {', '.join(versions)} and lion_pytorch; formulas are described there",
        "shape": list(SHAPE), "start": start(), "gradients": [gradient(t) for t in range(1, STEPS + 1)],
    }
    cases = [json.dumps({"optimizer": o, "name": n, "constants": c, "weights": w}) for o, n, (c, w) in CASES]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers.json")
    with open(path, "w") as f:
        f.write(json.dumps(out)[:-1] + ',\n"cases": [\n' + ",\n".join(cases) + "\n]}\n")


if __name__ == "__main__":
    main()
