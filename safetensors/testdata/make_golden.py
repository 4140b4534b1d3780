"""Writes golden.safetensors with the safetensors library. Values follow a formula that the Go test repeats.

Run from this directory: python make_golden.py
"""
import torch
from safetensors.torch import save_file

i = torch.arange(24, dtype=torch.float64)
v = (i - 11.5) * 0.37
save_file(
    {
        "b.f32": v.to(torch.float32).reshape(2, 3, 4),
        "a.f32": (v * 2).to(torch.float32),
        "bf16": v.to(torch.bfloat16).reshape(4, 6),
        "f16": v.to(torch.float16).reshape(6, 4),
        "f64": v,
        "i64": (i.to(torch.int64) - 5) * 1_000_000_007,
        "u8": (i * 11).to(torch.uint8),
        "scalar": torch.tensor(3.25, dtype=torch.float32),
        "empty": torch.zeros(0, 5, dtype=torch.bfloat16),
        'odd "name" <é>\\': torch.tensor([-0.0, float("inf")], dtype=torch.float32),
    },
    "golden.safetensors",
    metadata={"format": "pt"},
)
