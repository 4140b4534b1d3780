#!/usr/bin/env python3
"""Runs anneal's and PyTorch's training step by turns on one GPU and prints one table.

    compare_cuda.py --anneal ./anneal --python /path/to/python

anneal is a binary built with `go build -tags cuda ./cmd/anneal`; --python needs a torch with CUDA. Speeds are the best of --rounds
runs. Memory is what nvidia-smi counts for the whole card at most, less what it counted before. The utilisation (MFU) is of the card's
dense BF16 peak. The floor is no program but arithmetic: the products at that peak, and the bytes that the optimizer must move (28 a
parameter) at the memory's bandwidth. One JSON object with every run goes to --out.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import threading

from compare import fastest, least, number, ratio, run_json

HERE = os.path.dirname(os.path.abspath(__file__))


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--anneal", required=True, help="path of the anneal binary")
    p.add_argument("--python", default=sys.executable, help="a Python that has torch")
    p.add_argument("--shapes", nargs="+", default=["gpt2-small:16", "llama-1.1b:4"], help="NAME:BATCH, for so many sequences a step")
    p.add_argument("--modes", nargs="+", default=["default", "max-autotune"], help="of torch.compile; the best counts")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=15, help="each run measures at least this long")
    p.add_argument("--out", help="JSON file for every run")
    return p.parse_args()


def card_bytes():
    """The memory of the first visible card that is in use, by nvidia-smi; 0 without it."""
    if not shutil.which("nvidia-smi"):
        return 0
    card = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    out = subprocess.run(["nvidia-smi", f"--id={card}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True)
    return int(out.stdout.split()[0]) << 20 if out.returncode == 0 else 0


def watched(command):
    """A command's JSON, with the most memory of the card that it took."""
    before, most, done = card_bytes(), 0, threading.Event()

    def watch():
        nonlocal most
        while not done.wait(0.2):
            most = max(most, card_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run = run_json(command, {})
    done.set()
    watcher.join()
    if most:
        run["card_bytes"] = most - before
    return run


def engines(a, name, batch):
    ours = [a.anneal, "bench", "step", "--device", "cuda", "--shape", name, "--batch", batch, "--precision", "bf16", "--seconds", str(a.seconds), "--json"]
    yield "anneal", ours
    for mode in a.modes:
        yield f"torch {mode}", [
            a.python, os.path.join(HERE, "bench_torch_cuda.py"), "--shape", name, "--batch", batch, "--mode", mode, "--seconds", str(a.seconds)]


def compare(a, shape):
    """Alternates the engines; returns every run by engine."""
    name, _, batch = shape.partition(":")
    runs = {}
    for _ in range(a.rounds):
        for engine, command in engines(a, name, batch or "0"):
            run = watched(command)
            runs.setdefault(engine, []).append(run)
            print(f"{shape} {engine}: {run.get('error') or round(run['tokens_per_second'])}", file=sys.stderr, flush=True)
    return runs


def floor(card, ours, shape):
    """Tokens a second of a step that does nothing but its products and the optimizer's traffic, both at the card's limits."""
    run = next((r for r in ours if "tokens_per_second" in r), None)
    if not run or not card.get("bf16_flops") or not card.get("bytes_per_second"):
        return 0
    per_token = run["gflops"] * 1e9 / run["tokens_per_second"]
    tokens = run["tokens_per_second"] * run["step_ms_median"] / 1e3
    return tokens / (tokens * per_token / card["bf16_flops"] + 28 * run["parameters"] / card["bytes_per_second"])


def row(card, shape, runs):
    ours = runs["anneal"]
    best = max((r for name, r in runs.items() if name != "anneal"), key=fastest)
    peak = card.get("bf16_flops", 0)
    share = lambda rs: 100e9 * max((r.get("gflops", 0) for r in rs), default=0) / peak if peak else 0
    cells = [
        shape, number(fastest(ours)), number(fastest(best)), ratio(fastest(ours), fastest(best)), number(share(ours), ".0f"), number(share(best), ".0f"),
        number(floor(card, ours, shape)), number(least(ours, "card_bytes") / 1e6), number(least(best, "card_bytes") / 1e6),
        number(least(ours, "first_step_seconds"), ".1f"), number(least(best, "first_step_seconds"), ".1f"),
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = """| shape:batch | anneal tokens/s | PyTorch best tokens/s | against it | anneal MFU % | PyTorch MFU % | floor tokens/s | anneal MB | PyTorch MB | anneal first step s | PyTorch first step s |
|---|---|---|---|---|---|---|---|---|---|---|"""


def main():
    a = parse_args()
    cards = run_json([a.anneal, "doctor", "--json"], {}).get("cuda", {}).get("cards") or sys.exit(f"error: {a.anneal} finds no GPU: see what `{a.anneal} doctor` says")
    print(cards[0]["name"], file=sys.stderr)
    rows, every = [], {"card": cards[0]}
    for shape in a.shapes:
        runs = compare(a, shape)
        every[shape] = runs
        rows.append(row(cards[0], shape, runs))
        if a.out:
            with open(a.out, "w") as f:
                json.dump(every, f, indent=1)
    print(HEADER)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
