#!/usr/bin/env python3
"""Writes soap.json: ten steps of SOAP by the formulas of its paper (arXiv 2409.11321), with torch in float64.

    python make_soap.py           # rewrites soap.json beside this script

There is a packaged implementation (pytorch_optimizer). It decomposes the first preconditioner exactly, which leaves the
basis of a null space open, and sorts eigenvectors; so this script has its own: torch.linalg.qr of one power iteration,
ten for the first basis, with RAISE times the norm added to the eigenvalues. Where the basis is fixed and given by a
square matrix of full rank, its steps equal those of pytorch_optimizer, which the script checks.

Matrices are row major. With i the flat index and t = 1..10 the step,

    w_0[i]  = sin(1 + 0.7*i)                 g_t[i] = sin(0.3*t + 1.7*i*i) * (1 + i%5)

both rounded to three decimals. A case holds the weights after every step.
"""
import json
import math
import os

import torch

STEPS, FIRST, RAISE = 10, 10, 1e-5

CASES = [
    ("square", (5, 5), dict(lr=0.01, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1, every=1)),
    ("wide", (4, 6), dict(lr=0.01, beta1=0.95, beta2=0.95, eps=1e-8, weight_decay=0.0, every=3)),
    ("tall", (7, 3), dict(lr=0.02, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.1, every=4)),
]


def start(n):
    return [round(math.sin(1 + 0.7 * i), 3) for i in range(n)]


def gradient(t, n):
    return [round(math.sin(0.3 * t + 1.7 * i * i) * (1 + i % 5), 3) for i in range(n)]


def power(side, q):
    norm = max(side.norm().item(), 1e-7)
    return torch.linalg.qr(side @ q / norm + RAISE * q)[0]


def soap(shape, c, basis=None, steps=STEPS):
    n, like = math.prod(shape), dict(dtype=torch.float64)
    w = torch.tensor(start(n), **like).reshape(shape)
    m, v = torch.zeros_like(w), torch.zeros_like(w)
    left, right = torch.zeros(shape[0], shape[0], **like), torch.zeros(shape[1], shape[1], **like)
    p, q = torch.eye(shape[0], **like), torch.eye(shape[1], **like)
    b1, b2, weights = c["beta1"], c["beta2"], []
    for t in range(steps):  # the first gradient only gives the first basis
        g = torch.tensor(gradient(t + 1, n), **like).reshape(shape)
        if t > 0:
            w = w * (1 - c["lr"] * c["weight_decay"])
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * (p.T @ g @ q) ** 2
            u = (p.T @ m @ q / (1 - b1 ** t)) / ((v / (1 - b2 ** t)).sqrt() + c["eps"])
            w = w - c["lr"] * p @ u @ q.T
        left, right = b2 * left + (1 - b2) * g @ g.T, b2 * right + (1 - b2) * g.T @ g
        if t == 0 and basis:
            p, q = basis(left), basis(right)
        for _ in range(FIRST if t == 0 and not basis else int(t > 0 and t % c["every"] == 0)):
            p, q = power(left, p), power(right, q)
        weights.append(w.reshape(-1).tolist())
    return weights


def check():
    """One basis for all steps, that of the first gradient: those of pytorch_optimizer, but for where epsilon is."""
    from pytorch_optimizer import SOAP
    shape = (5, 5)
    c = dict(lr=0.01, beta1=0.9, beta2=0.95, eps=1e-15, weight_decay=0.0, every=100)
    want = soap(shape, c, basis=lambda x: torch.linalg.eigh(x)[1])
    w = torch.tensor(start(25), dtype=torch.float64).reshape(shape).requires_grad_(True)
    opt = SOAP([w], lr=c["lr"], betas=(c["beta1"], c["beta2"]), eps=c["eps"], weight_decay=0, precondition_frequency=100)
    for t in range(STEPS):
        w.grad = torch.tensor(gradient(t + 1, 25), dtype=torch.float64).reshape(shape)
        opt.step()
        worst = (w.detach().reshape(-1) - torch.tensor(want[t], dtype=torch.float64)).abs().max().item()
        assert worst < 1e-9, (t, worst)


def main():
    check()
    cases = []
    for name, shape, c in CASES:
        n = math.prod(shape)
        cases.append(json.dumps({
            "name": name, "shape": shape, **c, "start": start(n),
            "gradients": [gradient(t, n) for t in range(1, STEPS + 1)], "weights": soap(shape, c),
        }))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "soap.json")
    with open(path, "w") as f:
        about = f"made by make_soap.py with torch {torch.__version__.split('+')[0]}; formulas are described there"
        f.write(json.dumps({"about": about})[:-1] + ',\n"cases": [\n' + ",\n".join(cases) + "\n]}\n")


if __name__ == "__main__":
    main()
