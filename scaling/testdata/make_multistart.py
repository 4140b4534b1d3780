#!/usr/bin/env python3
"""Writes multistart.json: the best law of many L-BFGS searches from a grid of starts, for points with known laws.

    python make_multistart.py     # rewrites multistart.json beside this script; needs numpy and scipy, takes a minute

Each set has points (params, tokens, loss) whose losses are those of a law, with log-normal noise and, in some sets,
outliers. As in Hoffmann et al. 2022 the objective is the sum of Huber losses (delta = 1e-3) of ln L, as a function of
a = ln A, b = ln B, e = ln E, alpha and beta; the searches start at every alpha, beta in {0, 0.5, 1, 1.5, 2}, e in
{-1, 0, 1} and a, b in {0, 5, ... 25} that a fixed seed picks. The best of them is searched again from its end until
it no longer moves.
"""
import itertools
import json
import os

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

DELTA, STARTS, AGAIN = 1e-3, 240, 40

# name, (E, A, B, alpha, beta), sizes, tokens per set, noise, outliers
SETS = [
    ("ladder", (1.8172, 482.01, 2085.43, 0.3478, 0.3658), np.geomspace(1e8, 1.6e9, 5), [2e9, 8e9, 3.2e10], 0.005, 0),
    ("exact", (1.69, 406.4, 410.7, 0.34, 0.28), np.geomspace(1e7, 1e9, 5), [1e9, 4e9, 1.6e10], 0.0, 0),
    ("small models", (1.1, 40.0, 160.0, 0.32, 0.37), np.geomspace(1e5, 6.4e6, 7), [4e6, 1.6e7, 6.4e7], 0.003, 0),
    ("outliers", (1.9, 300.0, 1200.0, 0.33, 0.35), np.geomspace(5e7, 5e9, 8), [1e9, 1e10, 1e11], 0.004, 3),
    ("noisy", (1.5, 900.0, 3000.0, 0.4, 0.4), np.geomspace(2e7, 2e9, 6), [1e9, 5e9, 2.5e10], 0.02, 0),
    ("steep", (2.2, 9e4, 6e5, 0.7, 0.65), np.geomspace(1e7, 3e8, 6), [3e8, 1e9, 1e10], 0.004, 0),
    ("flat", (0.6, 12.0, 20.0, 0.12, 0.15), np.geomspace(1e7, 1e10, 6), [1e8, 2e9, 4e10, 8e11], 0.002, 0),
    ("few", (1.8, 480.0, 2000.0, 0.35, 0.37), np.geomspace(2e8, 3e9, 3), [4e9, 1.6e10, 1e11], 0.001, 0),
]


def loss(x, logs):
    """The objective and its gradient."""
    a, b, e, alpha, beta = x
    n, d, y = logs
    terms = np.stack([a - alpha * n, b - beta * d, np.full_like(n, e)])
    fit = logsumexp(terms, axis=0)
    share = np.exp(terms - fit)
    r = y - fit
    slope = -np.clip(r, -DELTA, DELTA)
    value = np.where(np.abs(r) <= DELTA, r * r / 2, DELTA * (np.abs(r) - DELTA / 2)).sum()
    gradient = [slope @ share[0], slope @ share[1], slope @ share[2], slope @ (-n * share[0]), slope @ (-d * share[1])]
    return value, np.array(gradient)


def search(x, logs):
    options = dict(maxiter=5000, maxfun=50000, ftol=1e-16, gtol=1e-13, maxcor=20)
    return minimize(lambda v: tuple(1e6 * t for t in loss(v, logs)), x, jac=True, method="L-BFGS-B", options=options)


def best(logs, random):
    grid = list(itertools.product(range(0, 26, 5), range(0, 26, 5), (-1, 0, 1), (0, .5, 1, 1.5, 2), (0, .5, 1, 1.5, 2)))
    found = [search(np.array(grid[i], float), logs) for i in random.choice(len(grid), STARTS, replace=False)]
    x = min(found, key=lambda r: r.fun).x
    for _ in range(AGAIN):
        x = min((search(x + random.normal(0, s, 5), logs) for s in (0, 1e-4, 1e-2)), key=lambda r: r.fun).x
    return x, loss(x, logs)[0], sorted(loss(r.x, logs)[0] for r in found)


def main():
    random = np.random.default_rng(18)
    sets = []
    for name, law, sizes, tokens, noise, outliers in SETS:
        e, a, b, alpha, beta = law
        points = np.array(list(itertools.product(np.round(sizes), tokens)))
        value = e + a * points[:, 0] ** -alpha + b * points[:, 1] ** -beta
        value *= np.exp(random.normal(0, noise, len(value)))
        value[random.choice(len(value), outliers, replace=False)] *= 1.15
        value = np.round(value, 8)
        logs = np.log(points[:, 0]), np.log(points[:, 1]), np.log(value)
        x, objective, all_found = best(logs, random)
        print(f"{name}: {objective:.12g}; of the starts, {np.mean(np.array(all_found) > 1.01 * objective):.0%} end above",
              "law", np.exp(x[2]), np.exp(x[0]), np.exp(x[1]), x[3], x[4])
        sets.append(dict(name=name, points=[[*p, v] for p, v in zip(points.tolist(), value.tolist())],
                         objective=objective, E=np.exp(x[2]), A=np.exp(x[0]), B=np.exp(x[1]), alpha=x[3], beta=x[4]))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "multistart.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(s) for s in sets) + "\n]\n")


main()
