#!/usr/bin/env python3
"""Runs anneal's and PyTorch's attention by turns, forward and backward, on rows of growing length, and prints one table.

    compare_attention.py --anneal ./anneal --python /path/to/python

--python needs torch. Up to --search tokens PyTorch runs with every setting of bench_attention.py, with malloc as it comes and with
one that keeps its memory; longer rows go on with those that were within 1.3 of the best. Engines alternate, so that a machine that
slows down slows both; the fastest of --rounds runs counts. Both have as many heads as `anneal bench attention` takes for the length.
One JSON object with every run goes to --out.
"""
import argparse
import json
import os
import sys

from best_torch import GLIBC
from compare import number, ratio, run_json

HERE = os.path.dirname(os.path.abspath(__file__))
MALLOC = {"": {}, "+malloc": {"GLIBC_TUNABLES": GLIBC}}
NEAR = 1.3


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--anneal", required=True, help="path of the anneal binary")
    p.add_argument("--python", default=sys.executable, help="a Python that has torch")
    p.add_argument("--patterns", nargs="+", default=["full", "window:1024"])
    p.add_argument("--lengths", nargs="+", type=int, default=[1024 << i for i in range(8)])
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--head-dim", type=int, default=64)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--search", type=int, default=4096, help="tokens up to which every setting is tried")
    p.add_argument("--seconds", type=float, default=1, help="time for each case")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--out", help="JSON file for every run")
    return p.parse_args()


def anneal_run(a, pattern, length, heads):
    flags = ["--lengths", str(length), "--heads", str(heads), "--head-dim", str(a.head_dim), "--threads", str(a.threads), "--seconds", str(a.seconds)]
    run = run_json([a.anneal, "bench", "attention", pattern, *flags, "--json"], {})
    return run["cases"][0] if "cases" in run else run


def torch_run(a, pattern, length, heads, malloc, settings):
    flags = ["--pattern", pattern, "--length", str(length), "--heads", str(heads), "--head-dim", str(a.head_dim), "--threads", str(a.threads), "--seconds", str(a.seconds)]
    run = run_json([a.python, os.path.join(HERE, "bench_attention.py"), *flags, "--settings", *settings], MALLOC[malloc])
    return {s + malloc: r for s, r in run.get("settings", {"every setting": run}).items()}


def by_malloc(settings):
    """The settings to try with each malloc: every one if there are none."""
    every = [f"{f}/{layout}/{m}" for m in ("sdpa", "math") for f in ("bf16", "fp32") for layout in ("heads", "rows")]
    if not settings:
        return {malloc: every for malloc in MALLOC}
    split = {malloc: [s.removesuffix("+malloc") for s in settings if s.endswith("+malloc") == bool(malloc)] for malloc in MALLOC}
    return {malloc: s for malloc, s in split.items() if s}


def compare(a, pattern, length, settings):
    """Every run of one case; settings are those that PyTorch goes on with, none for all."""
    heads, ours, theirs = a.heads, [], {}
    for _ in range(a.rounds):
        run = anneal_run(a, pattern, length, heads)
        heads = run.get("heads", heads)
        ours.append(run)
        for malloc, some in by_malloc(settings).items():
            for setting, r in torch_run(a, pattern, length, heads, malloc, some).items():
                theirs.setdefault(setting, []).append(r)
    return {"pattern": pattern, "length": length, "heads": heads, "anneal": ours, "pytorch": theirs}


def seconds(runs):
    """The fastest of some runs, 0 if none came to an end."""
    return min((r["seconds"] for r in runs if "seconds" in r), default=0)


def ranked(case):
    """PyTorch's settings with their seconds, the fastest first."""
    times = {s: seconds(r) for s, r in case["pytorch"].items()}
    return sorted((t, s) for s, t in times.items() if t)


def row(case):
    ours, rank = seconds(case["anneal"]), ranked(case)
    theirs, setting = rank[0] if rank else (0, "–")
    memory = min((r["peak_bytes"] for r in case["anneal"] if "peak_bytes" in r), default=0)
    share = max(r.get("fraction_of_peak", 0) for r in case["anneal"])
    cells = [
        case["pattern"], number(case["length"]), str(case["heads"]), number(1e3 * ours, ",.1f"), number(1e3 * theirs, ",.1f"), setting,
        ratio(theirs, ours), number(100 * share, ".0f"), number(memory / 1e6),
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = """| pattern | tokens | heads | anneal ms | PyTorch best ms | its setting | PyTorch / anneal | anneal % of peak | anneal MB |
|---|---|---|---|---|---|---|---|---|"""


def main():
    a = parse_args()
    cases, rows = [], []
    for pattern in a.patterns:
        settings = []
        for length in a.lengths:
            case = compare(a, pattern, length, [] if length <= a.search else settings)
            rank = ranked(case)
            settings = [s for t, s in rank if t <= NEAR * rank[0][0]] if rank else settings
            cases.append(case)
            rows.append(row(case))
            print(rows[-1], file=sys.stderr, flush=True)
            if a.out:
                with open(a.out, "w") as f:
                    json.dump(cases, f, indent=1)
    print(HEADER)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
