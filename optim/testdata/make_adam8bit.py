#!/usr/bin/env python3
"""Writes adam8bit.json: ten steps of bitsandbytes.optim.AdamW8bit on the CPU, in float32.

    python make_adam8bit.py       # rewrites adam8bit.json beside this script

The parameter is 24x400, row major: 37.5 blocks of 256 elements. With i the flat index and t = 1..10 the step,

    w_0[i] = ((i*31 + 7) % 101 - 50) / 400
    g_t[i] = ((i*791911 + t*1047297) % 1000003 - 500001) / 500000 * 2^-(i % 9)

bitsandbytes' fast quantiser for the CPU looks codes up in a coarse table and misses the nearest one in 7 to 10 % of all cases,
by up to 7 codes. Its plain one, which it uses for other dtypes than those that it has fast code for, takes the nearest as
its CUDA kernel does; here it is made to use that one throughout.

The gradient is 0 in the third block, elements 512 to 767. Every 61st element is kept of weights and codes, all of the scales.
"""
import json
import os

import bitsandbytes
import torch
from bitsandbytes.backends.cpu import ops

STEPS, SHAPE, EVERY = 10, (24, 400), 61
N = SHAPE[0] * SHAPE[1]


def start():
    return [((i * 31 + 7) % 101 - 50) / 400 for i in range(N)]


def gradient(t):
    return [0.0 if 512 <= i < 768 else ((i * 791911 + t * 1047297) % 1000003 - 500001) / 500000 * 2.0 ** -(i % 9) for i in range(N)]


def nearest(values, code, absmax_out, out, blocksize):
    codes, absmax = torch.ops.bitsandbytes.quantize_blockwise(values.double(), code, blocksize)
    out.copy_(codes)
    absmax_out.copy_(absmax)


def main():
    ops._quant_blockwise_fp32_direct = nearest
    c = dict(lr=0.01, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1)
    w = torch.nn.Parameter(torch.tensor(start(), dtype=torch.float32).reshape(SHAPE))
    opt = bitsandbytes.optim.AdamW8bit([w], lr=c["lr"], betas=(c["beta1"], c["beta2"]), eps=c["eps"], weight_decay=c["weight_decay"])
    weights = []
    for t in range(1, STEPS + 1):
        w.grad = torch.tensor(gradient(t), dtype=torch.float32).reshape(SHAPE)
        opt.step()
        weights.append(w.detach().reshape(-1)[::EVERY].tolist())
    s = opt.state[w]
    out = {
        "about": f"made by make_adam8bit.py with bitsandbytes {bitsandbytes.__version__}; formulas are described there",
        "shape": list(SHAPE), "steps": STEPS, "every": EVERY, **c,
        "m": s["state1"].reshape(-1)[::EVERY].tolist(), "m_scale": s["absmax1"].tolist(),
        "v": s["state2"].reshape(-1)[::EVERY].tolist(), "v_scale": s["absmax2"].tolist(), "weights": weights,
    }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "adam8bit.json"), "w") as f:
        f.write(json.dumps(out).replace('], "', '],\n"').replace("], [", "],\n[") + "\n")


if __name__ == "__main__":
    main()
