#!/usr/bin/env python3
"""Writes muon.json: ten steps of torch.optim.Muon, and of the original Muon and NorMuon.

    PYTHONPATH=DIR python make_muon.py          # rewrites muon.json beside this script

DIR holds muon.py of github.com/KellerJordan/Muon and normuon.py of github.com/zichongli5/NorMuon, as published. All of
them iterate in bfloat16; here everything is float64, for which bfloat16() is replaced by clone().

With i the flat, row-major index and t = 1..10 the step, both rounded to three decimals,

    w_0[i]  = sin(1 + 0.7*i)                 g_t[i] = sin(0.3*t + 1.1*i + 0.37*i*i)
"""
import json
import math
import os

import muon
import normuon
import torch

STEPS = 10
HYPER = dict(lr=0.02, momentum=0.95, weight_decay=0.1)

# name, our scaling, whether NorMuon, the original
SETS = [
    ("torch-original", "jordan", False, lambda w: torch.optim.Muon([w], adjust_lr_fn="original", **HYPER)),
    ("torch-match-rms", "match_rms", False, lambda w: torch.optim.Muon([w], adjust_lr_fn="match_rms_adamw", **HYPER)),
    ("torch-spectral", "spectral_mup", False, lambda w: torch.optim.Muon([w], adjust_lr_fn="spectral_unclamped", **HYPER)),
    ("keller-jordan", "jordan", False, lambda w: muon.SingleDeviceMuon([w], **HYPER)),
    ("normuon", "jordan", True, lambda w: normuon.SingleDeviceNorMuon([w], beta2=0.95, **HYPER)),
]
SHAPES = [(3, 5), (5, 3), (4, 4)]


def start(n):
    return [round(math.sin(1 + 0.7 * i), 3) for i in range(n)]


def gradient(t, n):
    return [round(math.sin(0.3 * t + 1.1 * i + 0.37 * i * i), 3) for i in range(n)]


def trajectory(make, shape):
    n = math.prod(shape)
    w = torch.tensor(start(n), dtype=torch.float64).reshape(shape).requires_grad_(True)
    opt = make(w)
    weights = []
    for t in range(1, STEPS + 1):
        w.grad = torch.tensor(gradient(t, n), dtype=torch.float64).reshape(shape)
        opt.step()
        weights.append(w.detach().reshape(-1).tolist())
    return weights, opt.state[w]["momentum_buffer"].reshape(-1).tolist()


def main():
    torch.Tensor.bfloat16 = torch.Tensor.clone
    sets = []
    for name, scale, nor, make in SETS:
        for shape in SHAPES:
            weights, momentum = trajectory(make, shape)
            n = math.prod(shape)
            sets.append({
                "name": name, "scale": scale, "normuon": nor, "rows": shape[0], "cols": shape[1],
                "start": start(n), "gradients": [gradient(t, n) for t in range(1, STEPS + 1)],
                "weights": weights, "momentum": momentum,
            })
    out = {"about": f"made by make_muon.py with PyTorch {torch.__version__.split('+')[0]}; what is in it is described there", **HYPER}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "muon.json")
    with open(path, "w") as f:
        f.write(json.dumps(out)[:-1] + ',\n"sets": [\n' + ",\n".join(json.dumps(s) for s in sets) + "\n]}\n")


if __name__ == "__main__":
    main()
