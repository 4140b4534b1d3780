#!/usr/bin/env python3
"""Times PyTorch's training step on one GPU: BF16 autocast over FP32 weights, SDPA, torch.compile, clip_grad_norm_, fused AdamW.

    bench_torch_cuda.py --shape gpt2-small --batch 16

Prints one JSON object; its keys match `anneal bench step --json` where both have them. Steps are timed by the clock on the wall, from
one synchronisation to the next; the loss is read in every step, as a training loop that shows it would.
"""
import argparse
import json
import statistics
import time
from dataclasses import replace

import bench_torch


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shape", default="gpt2-small", choices=["tiny", "llama-98m", "gpt2-small", "llama-1.1b"])
    p.add_argument("--batch", type=int, default=0, help="sequences a step; 0: the shape's own")
    p.add_argument("--context", type=int, default=0, help="tokens a sequence; 0: the shape's own")
    p.add_argument("--mode", default="default", help="of torch.compile: default, reduce-overhead or max-autotune; none leaves it out")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--steps", type=int, default=10, help="measure at least so many")
    p.add_argument("--warmup", type=int, default=5)
    return p.parse_args()


def main():
    a = parse_args()
    import torch
    import torch_models

    torch.set_default_device("cuda")
    torch.manual_seed(1337)
    shape = torch_models.SHAPES[a.shape]
    shape = replace(shape, batch=a.batch or shape.batch, context=a.context or shape.context)
    model = torch_models.build(shape, "sdpa", "full")
    forward = model if a.mode == "none" else torch.compile(model, mode=a.mode)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    data = torch.randint(0, shape.vocab, (4, shape.batch, shape.context + 1))

    def step(i):
        batch = data[i % len(data)]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = forward(batch[:, :-1].contiguous(), batch[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    step(0)
    first = bench_torch.since_launch()
    for i in range(1, a.warmup):
        step(i)
    times, begin = [], time.perf_counter()
    while len(times) < a.steps or time.perf_counter() - begin < a.seconds:
        start = time.perf_counter()
        loss = step(len(times))
        times.append(time.perf_counter() - start)
    median = statistics.median(times)
    rate = shape.batch * shape.context / median
    print(json.dumps({
        "engine": "torch", "torch": torch.__version__, "device": torch.cuda.get_device_name(), "shape": a.shape, "batch": shape.batch, "context": shape.context,
        "mode": a.mode, "tokens_per_second": rate, "step_ms_median": 1e3 * median, "steps": len(times), "first_step_seconds": first,
        "gflops": rate * torch_models.flops_per_token(model, shape) / 1e9, "parameters": sum(p.numel() for p in parameters),
        "peak_device_bytes": torch.cuda.max_memory_reserved(), "loss": loss,
    }))


if __name__ == "__main__":
    main()
