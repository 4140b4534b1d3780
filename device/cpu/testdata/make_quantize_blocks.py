"""Writes quantize_blocks.json: matrices, and their E4M3 codes with the E8M0 scale of each block.

    python make_quantize_blocks.py

Blocks of 32 are torchao's MXFP8 (to_mx with ScalingMode.RCEIL), across rows and, by a transposed matrix, down columns.
Blocks of 1 x 128 and 128 x 128 are torch's float8_e4m3fn of x / scale, where scale = 2 ** ceil(log2(amax / 448)) as in
Transformer Engine's Float8BlockScaling. Needs torch 2.15 and torchao 0.18.
"""

import base64
import json
import math
import pathlib
from fractions import Fraction

import torch
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.mx_tensor import to_mx


def matrix(rows, cols, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, cols, generator=g) * torch.exp(3 * torch.randn(rows, cols, generator=g))
    x[torch.rand(rows, cols, generator=g) < 0.05] = 0
    x[3, : min(cols, 40)] = 0  # a block of zeros
    x[5, 7] = 448.0  # exactly at the top, one above, and one power of two higher
    x[6, 7] = 450.0
    x[7, 7] = 896.0
    return x.bfloat16()


def text(t):
    return base64.b64encode(t.contiguous().view(torch.uint8).numpy().tobytes()).decode()


def mx(x):
    scale, codes = to_mx(x, torch.float8_e4m3fn, 32, ScaleCalculationMode.RCEIL)
    return codes, scale


def exponent(amax):
    if amax == 0:
        return 0
    share, e = math.frexp(Fraction(amax) / 448)
    return e - 1 if share == 0.5 else e


def blocks(x, high, wide):
    rows, cols = x.shape
    codes = torch.zeros(rows, cols, dtype=torch.float8_e4m3fn)
    scales = []
    for r in range(0, rows, high):
        for c in range(0, cols, wide):
            block = x[r : r + high, c : c + wide].double()
            e = exponent(block.abs().max().item())
            codes[r : r + high, c : c + wide] = (block / 2.0**e).float().to(torch.float8_e4m3fn)
            scales.append(e + 127)
    return codes, torch.tensor(scales, dtype=torch.uint8)


def case(name, x, high, wide, codes, scale):
    return {"name": name, "rows": x.shape[0], "cols": x.shape[1], "high": high, "wide": wide, "x": text(x),
            "codes": text(codes), "scales": text(scale)}


small, large = matrix(64, 96, 1), matrix(130, 136, 2)
down, down_scale = mx(small.t().contiguous())
cases = [
    case("mx across", small, 1, 32, *mx(small)),
    case("mx down", small, 32, 1, down.t(), down_scale.view(torch.uint8).t()),
    case("1 x 128", large, 1, 128, *blocks(large, 1, 128)),
    case("128 x 128", large, 128, 128, *blocks(large, 128, 128)),
]
pathlib.Path(__file__).with_name("quantize_blocks.json").write_text(json.dumps(cases, indent=0) + "\n")
