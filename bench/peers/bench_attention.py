#!/usr/bin/env python3
"""Times PyTorch's attention on the CPU, forward and backward of one row of tokens, with several settings.

    bench_attention.py --length 4096 --heads 8 --threads 2
    bench_attention.py --length 4096 --pattern window:1024 --settings bf16/rows/sdpa fp32/heads/sdpa

A setting is FORMAT/LAYOUT/METHOD. FORMAT: bf16, fp32. LAYOUT: heads, three tensors [1, H, T, E], each contiguous; rows, views of one
projection [1, T, 3, H, E], as a model has them. METHOD: sdpa, scaled_dot_product_attention with is_causal (with a mask [T, T] for a
window), whose kernel PyTorch picks; math, its plain kernel. flex_attention is left out: on CPUs it has no backward pass.

Prints one JSON object: the seconds of the fastest run of each setting, forward and backward together, or why there is none.
"""
import argparse
import json
import resource
import sys
import time

ALL = [f"{f}/{layout}/{m}" for m in ("sdpa", "math") for f in ("bf16", "fp32") for layout in ("heads", "rows")]


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--length", type=int, default=4096, help="tokens in the row")
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--head-dim", type=int, default=64)
    p.add_argument("--pattern", default="full", help="full or window:W")
    p.add_argument("--settings", nargs="+", default=ALL, metavar="SETTING")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1, help="time for each setting")
    p.add_argument("--largest", type=int, default=8192, help="tokens up to which a matrix [T, T] is tried")
    return p.parse_args()


def window_of(pattern):
    """The window of a pattern, 0 for full."""
    name, _, size = pattern.partition(":")
    if name not in ("full", "window") or (name == "window") != bool(size):
        sys.exit(f"error: --pattern {pattern} is neither full nor window:W")
    return int(size or 0)


def attend(torch, a, method):
    """The function of q, k, v that a method stands for."""
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    window, t = window_of(a.pattern), a.length
    if (window or method == "math") and t > a.largest:
        raise ValueError(f"a matrix of {t}×{t}")
    mask = None
    if window:
        i = torch.arange(t)
        mask = (i[:, None] >= i) & (i[:, None] - i < window)

    def sdpa(q, k, v):
        with sdpa_kernel([SDPBackend.MATH] if method == "math" else [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)

    return sdpa


def measure(torch, a, setting):
    fmt, layout, method = setting.split("/")
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[fmt]
    row = (1, a.heads, a.length, a.head_dim)
    shapes = [row] * 3 if layout == "heads" else [(1, a.length, 3, a.heads, a.head_dim)]
    leaves = [torch.randn(s, dtype=dtype).requires_grad_() for s in shapes]
    dout = torch.randn(row, dtype=dtype)
    f = attend(torch, a, method)

    def once():
        for leaf in leaves:
            leaf.grad = None
        start = time.perf_counter()
        q, k, v = leaves if layout == "heads" else [x.transpose(1, 2) for x in leaves[0].unbind(2)]
        f(q, k, v).backward(dout)
        return time.perf_counter() - start

    first, start = once(), time.perf_counter()
    if first > a.seconds:
        return {"seconds": first, "runs": 1}
    times = [once()]  # the first has set things up
    while time.perf_counter() - start < a.seconds:
        times.append(once())
    return {"seconds": min(times), "runs": len(times)}


def main():
    a = parse_args()
    window_of(a.pattern)
    import torch

    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    torch.nn.functional.scaled_dot_product_attention(*torch.randn(3, 1, 1, 64, 64), is_causal=True)  # starts threads, loads kernels
    results = {}
    for setting in a.settings:
        try:
            results[setting] = measure(torch, a, setting)
        except Exception as e:  # a method that cannot do it is a result, too
            results[setting] = {"error": (str(e).strip() or type(e).__name__).splitlines()[0][:200]}
    print(json.dumps({
        "engine": f"pytorch {torch.__version__}", "pattern": a.pattern, "length": a.length, "heads": a.heads, "head_dim": a.head_dim,
        "threads": a.threads, "settings": results, "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
