#!/usr/bin/env python3
"""Runs anneal's and PyTorch's training step by turns on the same shapes and prints one table.

    compare.py --anneal ./anneal --python /path/to/python --best results.json

--python needs torch; results.json is what best_torch.py wrote, and for cases it lacks PyTorch's best is taken to be torch.compile.
PyTorch runs twice per case: as it comes, and with its best settings. Runs alternate, so that a machine that slows down
slows both; speeds are the best of --rounds runs, memory is the least. Seconds to PyTorch's first step are given with an empty and
with a filled cache of compiled code. One JSON object with every run goes to --out.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_BEST = {"flags": ["--compile"], "env": {}}


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--anneal", required=True, help="path of the anneal binary")
    p.add_argument("--python", default=sys.executable, help="a Python that has torch")
    p.add_argument("--best", help="JSON written by best_torch.py")
    p.add_argument("--shapes", nargs="+", default=["tiny", "llama-98m", "gpt2-small:1", "gpt2-small"], help="NAME, or NAME:BATCH for so many sequences a step")
    p.add_argument("--precisions", nargs="+", default=["bf16", "fp32"])
    p.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=8, help="each run measures at least this long")
    p.add_argument("--skip-out-of-box", action="store_true", help="leave out PyTorch as it comes")
    p.add_argument("--out", help="JSON file for every run")
    return p.parse_args()


def run_json(command, env):
    """The last line of a command's output, as JSON; or {"error": ...}."""
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return {"error": (done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1]}
    return json.loads(lines[-1])


def shape_flags(shape):
    """The options, of both engines, for NAME or NAME:BATCH."""
    name, _, batch = shape.partition(":")
    return ["--shape", name, *(["--batch", batch] if batch else [])]


def anneal_step(a, shape, precision, threads):
    case = [*shape_flags(shape), "--precision", precision, "--threads", str(threads)]
    return run_json([a.anneal, "bench", "step", *case, "--seconds", str(a.seconds), "--json"], {})


def torch_step(a, shape, precision, threads, setting):
    case = [*shape_flags(shape), "--precision", precision, "--threads", str(threads), "--seconds", str(a.seconds), "--steps", "3"]
    return run_json([a.python, os.path.join(HERE, "bench_torch.py"), *case, *setting["flags"]], setting["env"])


def speed(run):
    return run.get("tokens_per_second_best", run.get("tokens_per_second", 0))


def fastest(runs):
    return max(map(speed, runs))


def least(runs, key):
    """The smallest figure under key among the runs that have it, or 0."""
    return min((r[key] for r in runs if key in r), default=0)


def first_steps(runs):
    """Seconds to the first step in the first run and, if there were more, at least in the later ones."""
    cold, warm = least(runs[:1], "first_step_seconds"), least(runs[1:], "first_step_seconds")
    return number(cold, ".1f") + (" / " + number(warm, ".1f") if warm else "")


def compare(a, best, shape, precision, threads):
    """Alternates the engines; returns every run by engine."""
    name = shape.partition(":")[0]
    tuned = best.get(f"{shape}/{precision}/{threads}", best.get(f"{name}/{precision}/{threads}", {})).get("best", DEFAULT_BEST)
    with tempfile.TemporaryDirectory() as cache:
        tuned = {"flags": tuned["flags"], "env": {**tuned["env"], "TORCHINDUCTOR_CACHE_DIR": cache}}
        engines = {
            "anneal": lambda: anneal_step(a, shape, precision, threads),
            "best": lambda: torch_step(a, shape, precision, threads, tuned),
        }
        if not a.skip_out_of_box:
            engines["out_of_box"] = lambda: torch_step(a, shape, precision, threads, {"flags": [], "env": {}})
        return alternate(engines, a.rounds, f"{shape} {precision} {threads}")


def alternate(engines, rounds, label):
    runs = {name: [] for name in engines}
    for _ in range(rounds):
        for name, engine in engines.items():
            run = engine()
            runs[name].append(run)
            print(f"{label} {name}: {run.get('error') or round(speed(run))}", file=sys.stderr, flush=True)
    return runs


def ratio(x, y):
    return f"{x / y:.2f}×" if x and y else "–"


def number(x, form=",.0f"):
    return format(x, form) if x else "–"


def row(shape, precision, threads, runs):
    ours, best, plain = runs["anneal"], runs["best"], runs.get("out_of_box", [{}])
    share = max(r.get("fraction_of_peak", 0) for r in ours)
    cells = [
        shape, precision, str(threads), number(fastest(ours)), number(fastest(best)), number(fastest(plain)),
        ratio(fastest(ours), fastest(best)), ratio(fastest(ours), fastest(plain)), number(100 * share, ".0f"),
        number(least(ours, "peak_rss_bytes") / 1e6), number(least(best, "peak_rss_bytes") / 1e6),
        number(least(ours, "first_step_seconds"), ".2f"), first_steps(best),
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = """| shape | precision | threads | anneal tokens/s | PyTorch best tokens/s | PyTorch as it comes tokens/s | against best | against as it comes | anneal % of peak | anneal RSS MB | PyTorch best RSS MB | anneal first step s | PyTorch first step s, cold / warm |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main():
    a = parse_args()
    best = {}
    if a.best:
        with open(a.best) as f:
            best = json.load(f)
    rows, every = [], {}
    for shape in a.shapes:
        for precision in a.precisions:
            for threads in a.threads:
                runs = compare(a, best, shape, precision, threads)
                every[f"{shape}/{precision}/{threads}"] = runs
                rows.append(row(shape, precision, threads, runs))
                if a.out:
                    with open(a.out, "w") as f:
                        json.dump(every, f, indent=1)
    print(HEADER)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
