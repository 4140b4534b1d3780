#!/usr/bin/env python3
"""Times PyTorch's training step on the CPU: forward, backward, clip_grad_norm_(1.0), fused AdamW, on random tokens.

    bench_torch.py --shape tiny --precision bf16 --threads 1 --compile --attention math

Prints one JSON object; its keys match `anneal bench step --json` where both have them.

Time. With one thread a step is measured by process CPU time, so that other load on the machine matters little; with
more, by the clock on the wall. Wall times are always given too. Precisions: fp32; bf16 (autocast over FP32 weights);
fp32-medium (FP32 storage, products allowed in BF16: torch.set_float32_matmul_precision("medium")).

Malloc and instruction-set settings are environment variables and belong to the caller: best_torch.py tries them.
"""
import argparse
import contextlib
import fcntl
import json
import os
import resource
import statistics
import sys
import time
from dataclasses import replace


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shape", default="tiny", choices=["tiny", "llama-98m", "gpt2-small"])
    p.add_argument("--precision", default="bf16", choices=["fp32", "fp32-medium", "bf16"])
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--compile", action="store_true", help="torch.compile the model")
    p.add_argument("--attention", default="sdpa", help="sdpa, sdpa-fp32, math or math-lowp (see torch_models.py)")
    p.add_argument("--loss", default="full", help="full or chunked (linear_cross_entropy)")
    p.add_argument("--inductor", action="append", default=[], metavar="KEY=VALUE", help="set torch._inductor.config.KEY, VALUE in JSON; repeatable")
    p.add_argument("--flush-denormal", action="store_true")
    p.add_argument("--batch", type=int, default=0, help="sequences a step; 0: the shape's own")
    p.add_argument("--context", type=int, default=0, help="tokens a sequence; 0: the shape's own")
    p.add_argument("--seconds", type=float, default=15, help="measure at least this long")
    p.add_argument("--steps", type=int, default=5, help="and at least this many steps")
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--lock", metavar="FILE", help="hold an exclusive lock on FILE while measuring, so that benchmarks take turns")
    p.add_argument("--profile", action="store_true", help="print the operators of one step to stderr")
    return p.parse_args()


def since_launch():
    """Seconds since the kernel started this process: the interpreter and imports count."""
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/uptime") as f:
        return float(f.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")


def peak_rss_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextlib.contextmanager
def exclusive(path):
    """Holds a lock on the file at path, if there is one."""
    if not path:
        yield
        return
    with open(path, "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def configure_inductor(torch, assignments):
    import torch._inductor.config as config

    for text in assignments:
        key, value = text.split("=", 1)
        target, parts = config, key.split(".")
        for part in parts[:-1]:
            target = getattr(target, part)
        if not hasattr(target, parts[-1]):
            sys.exit(f"error: torch._inductor.config has no {key}")
        setattr(target, parts[-1], json.loads(value))


class Trainer:
    """A model, its optimizer and the data; step() is what is timed."""

    def __init__(self, torch, model, precision, compiled, clock, data):
        self.torch, self.clock, self.data = torch, clock, data
        self.params = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.params, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        self.forward = torch.compile(model) if compiled else model
        self.autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16")
        self.count = 0

    def step(self):
        """One optimizer step. Returns the loss and the times of forward, backward, clip and update."""
        batch = self.data[self.count % len(self.data)]
        self.count += 1
        ids, targets = batch[:, :-1].contiguous(), batch[:, 1:].contiguous()
        marks = [self.clock()]
        with self.autocast:
            loss = self.forward(ids, targets)
        marks.append(self.clock())
        loss.backward()
        marks.append(self.clock())
        self.torch.nn.utils.clip_grad_norm_(self.params, 1.0)
        marks.append(self.clock())
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        marks.append(self.clock())
        return loss.item(), [b - a for a, b in zip(marks, marks[1:])]


def measure(trainer, a):
    """Times steps for a.seconds and at least a.steps. Returns losses, per-step wall seconds and per-step phases."""
    losses, walls, phases = [], [], []
    start = time.perf_counter()
    while len(walls) < a.steps or time.perf_counter() - start < a.seconds:
        t = time.perf_counter()
        loss, parts = trainer.step()
        walls.append(time.perf_counter() - t)
        losses.append(loss)
        phases.append(parts)
    return losses, walls, phases


def print_profile(torch, trainer):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        trainer.step()
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=30, max_name_column_width=60), file=sys.stderr)


def main():
    a = parse_args()
    import torch
    import torch_models

    import_rss = peak_rss_bytes()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1337)
    if a.precision == "fp32-medium":
        torch.set_float32_matmul_precision("medium")
    if a.flush_denormal:
        torch.set_flush_denormal(True)
    configure_inductor(torch, a.inductor)

    shape = torch_models.SHAPES[a.shape]
    shape = replace(shape, batch=a.batch or shape.batch, context=a.context or shape.context)
    model = torch_models.build(shape, a.attention, a.loss)
    data = torch.randint(0, shape.vocab, (4, shape.batch, shape.context + 1), generator=torch.Generator().manual_seed(1))
    clock = time.process_time if a.threads == 1 else time.perf_counter
    trainer = Trainer(torch, model, a.precision, a.compile, clock, data)

    first_loss, _ = trainer.step()
    first_step = since_launch()
    with exclusive(a.lock):
        for _ in range(a.warmup - 1):
            trainer.step()
        losses, walls, phases = measure(trainer, a)
    if a.profile:
        print_profile(torch, trainer)

    tokens = shape.batch * shape.context
    times = [sum(parts) for parts in phases]
    median, best = statistics.median(times), min(times)
    gflop = torch_models.flops_per_token(model, shape) * tokens / 1e9
    names = ["forward", "backward", "clip", "optimizer"]
    print(json.dumps({
        "engine": f"pytorch {torch.__version__}", "shape": a.shape, "precision": a.precision, "threads": a.threads,
        "compile": a.compile, "attention": a.attention, "loss_kind": a.loss, "inductor": a.inductor,
        "batch": shape.batch, "context": shape.context, "parameters": sum(p.numel() for p in model.parameters()),
        "tokens_per_second": round(tokens / median, 1), "tokens_per_second_best": round(tokens / best, 1),
        "step_ms_median": round(median * 1e3, 2), "step_ms_best": round(best * 1e3, 2),
        "wall_step_ms_median": round(statistics.median(walls) * 1e3, 2), "steps": len(times),
        "phase_ms": {n: round(statistics.median(p[i] for p in phases) * 1e3, 2) for i, n in enumerate(names)},
        "gflops": round(gflop / median, 1), "gflops_best": round(gflop / best, 1),
        "peak_rss_bytes": peak_rss_bytes(), "import_rss_bytes": import_rss,
        "first_step_seconds": round(first_step, 2), "first_loss": round(first_loss, 4), "last_loss": round(losses[-1], 4),
    }), flush=True)


if __name__ == "__main__":
    main()
