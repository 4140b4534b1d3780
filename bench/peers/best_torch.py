#!/usr/bin/env python3
"""Looks for the fastest PyTorch training step on this machine, per (shape, precision, threads).

    best_torch.py --shape tiny --precision bf16 --threads 1 --out results.json

Starts from PyTorch as it comes ("out of the box"), tries every attention with and without torch.compile, then adds one
setting at a time to the best so far (memory allocation, inductor options, instruction sets of oneDNN and MKL, MKL as on Intel, thread
pinning, chunked loss) and keeps it when it gains more than one percent. Each try is a run of bench_torch.py in a fresh process.
Prints a summary for people on stderr, one JSON object on stdout, and with --out merges it into a file after every try.
"""
import argparse
import ctypes.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GLIBC = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=34359738368:glibc.malloc.trim_threshold=34359738368"
GAIN = 1.01  # a setting must earn this factor to stay


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--python", default=sys.executable, help="a Python that has torch")
    p.add_argument("--shape", default="tiny")
    p.add_argument("--batch", type=int, default=0, help="sequences a step; 0: the shape's own")
    p.add_argument("--precision", default="bf16", choices=["fp32", "bf16"])
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=8)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--timeout", type=float, default=600, help="seconds after which a try counts as failed")
    p.add_argument("--like", metavar="CASE", help="a case already in --out (as tiny/bf16/1): try only PyTorch as it comes and the fastest settings found there")
    p.add_argument("--top", type=int, default=3, help="how many of the fastest settings --like takes over")
    p.add_argument("--allocator", action="append", default=[], help="a shared library to preload; repeatable (default: jemalloc and tcmalloc where installed)")
    p.add_argument("--lock", help="handed to bench_torch.py")
    p.add_argument("--out", help="JSON file to merge the result into")
    return p.parse_args()


def setting(name, *flags, **env):
    return {"name": name, "flags": list(flags), "env": env}


OUT_OF_BOX = setting("as it comes")


def bases(precision):
    """The attention and compilation variants everything else is added to."""
    attentions = ["sdpa", "math"] if precision == "fp32" else ["sdpa", "sdpa-fp32", "math", "math-lowp"]
    out = [OUT_OF_BOX, setting("compile", "--compile")]
    for attention in attentions[1:]:
        out.append(setting(attention, "--attention", attention))
        out.append(setting(f"compile, {attention}", "--compile", "--attention", attention))
    return out


def additions(a, compiled):
    """Settings tried one after another on top of the best so far."""
    out = [setting("glibc huge pages, no trim", GLIBC_TUNABLES=GLIBC)]
    found = a.allocator or [lib for lib in map(ctypes.util.find_library, ("jemalloc", "tcmalloc_minimal")) if lib]
    out += [setting("preload " + os.path.basename(lib), LD_PRELOAD=lib) for lib in found]
    if compiled:
        out += [
            setting("inductor cpp_wrapper", "--inductor", "cpp_wrapper=true"),
            setting("inductor max_autotune", "--inductor", "max_autotune=true"),
        ]
    out.append(setting("chunked loss", "--loss", "chunked"))
    if a.precision == "bf16":
        out += [setting("oneDNN " + isa, ONEDNN_MAX_CPU_ISA=isa) for isa in ("AVX512_CORE_BF16", "AVX512_CORE_VNNI")]
    else:
        out.append(setting("MKL AVX512", MKL_ENABLE_INSTRUCTIONS="AVX512"))
        out += [setting("MKL as on Intel", LD_PRELOAD=lib) for lib in mkl_as_on_intel()]
    if a.threads > 1:
        out.append(setting("pinned threads", OMP_PROC_BIND="close", OMP_PLACES="cores"))
    return out


def mkl_as_on_intel():
    """MKL takes slower paths on other makers' CPUs: a library to preload that tells it otherwise; none without a C compiler, or on Intel."""
    cc = shutil.which("cc")
    if not cc or "GenuineIntel" in open("/proc/cpuinfo").read():
        return []
    lib = os.path.join(tempfile.gettempdir(), "mkl-as-on-intel.so")
    subprocess.run([cc, "-shared", "-fPIC", "-x", "c", "-o", lib, "-"], input=b"int mkl_serv_intel_cpu_true(void) { return 1; }", check=True)
    return [lib]


def combine(base, extra):
    env = {**base["env"], **extra["env"]}
    libs = [e["env"]["LD_PRELOAD"] for e in (base, extra) if "LD_PRELOAD" in e["env"]]
    if libs:
        env["LD_PRELOAD"] = ":".join(libs)
    return {"name": f"{base['name']} + {extra['name']}", "flags": base["flags"] + extra["flags"], "env": env}


def attempt(a, s):
    """Runs one setting; returns it with its result, or with an "error"."""
    command = [a.python, os.path.join(HERE, "bench_torch.py"), "--shape", a.shape, "--batch", str(a.batch), "--precision", a.precision, "--threads", str(a.threads),
               "--seconds", str(a.seconds), "--steps", str(a.steps), *(["--lock", a.lock] if a.lock else []), *s["flags"]]
    try:
        done = subprocess.run(command, env={**os.environ, **s["env"]}, capture_output=True, text=True, timeout=a.timeout)
        lines = done.stdout.strip().splitlines()
        result = json.loads(lines[-1]) if done.returncode == 0 and lines else {"error": done.stderr.strip()[-400:] or f"exit {done.returncode}"}
    except subprocess.TimeoutExpired:
        result = {"error": f"timed out after {a.timeout:g} s"}
    print(f"  {s['name']:60s} " + (f"{result['tokens_per_second_best']:9.1f} tok/s  {result['peak_rss_bytes'] / 1e6:6.0f} MB  first step {result['first_step_seconds']:.1f} s"
          if "error" not in result else "failed: " + result["error"].splitlines()[-1]), file=sys.stderr, flush=True)
    return {**s, **result}


def speed(t):
    return t.get("tokens_per_second_best", 0)


def fastest(path, case, n):
    """The n fastest settings of a case searched earlier."""
    with open(path) as f:
        tries = json.load(f)[case]["tries"]
    tries = sorted((t for t in tries if t["flags"] or t["env"]), key=speed, reverse=True)
    return [{key: t[key] for key in ("name", "flags", "env")} for t in tries[:n]]


def search(a, record):
    """Tries the bases, then the additions; calls record with all tries so far after each one."""
    tries = []

    def run(s):
        tries.append(attempt(a, s))
        record(tries)
        return tries[-1]

    if a.like:
        for s in [OUT_OF_BOX, *fastest(a.out, a.like, a.top)]:
            run(s)
        return
    best = max((run(s) for s in bases(a.precision)), key=speed)
    for extra in additions(a, "--compile" in best["flags"]):
        t = run(combine(best, extra))
        if speed(t) > GAIN * speed(best):
            best = t


def summary(tries):
    worked = [t for t in tries if "error" not in t]
    if not worked:
        return {"tries": tries}
    return {"best": max(worked, key=speed), "leanest": min(worked, key=lambda t: t["peak_rss_bytes"]), "tries": tries}


def merge(path, key, value):
    """Writes value under key into the JSON object in the file at path."""
    data = {}
    if os.path.exists(path):
        with open(path) as f:
            data = json.load(f)
    data[key] = value
    with open(path + ".part", "w") as f:
        json.dump(data, f, indent=1)
    os.replace(path + ".part", path)


def main():
    a = parse_args()
    if a.like and not a.out:
        sys.exit("error: --like needs --out, the file that holds the earlier search")
    key = f"{a.shape}{f':{a.batch}' if a.batch else ''}/{a.precision}/{a.threads}"
    print(key, file=sys.stderr)
    last = {}

    def record(tries):
        last.update(summary(tries))
        if a.out:
            merge(a.out, key, last)

    search(a, record)
    print(json.dumps({"case": key, **last}))


if __name__ == "__main__":
    main()
