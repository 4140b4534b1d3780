#!/usr/bin/env python3
"""Checks in llama.cpp's server that `anneal export --to gguf` writes the model: token ids and greedy text.

    check_gguf_server.py --anneal ./anneal RUN=FILE.gguf …

Needs xllamacpp, a wheel with llama.cpp's server: nothing is compiled, and torch is not needed (check_gguf.py compares
logits as well, and needs both). For each run and its export in F32:

- ids: 1,000 texts in many scripts have the ids that `anneal serve` gives.
- greedy: on 20 prompts, 64 tokens are those of `anneal serve` at temperature 0.

Exit code 1 if a check fails.
"""
import argparse
import json
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import xllamacpp

NEW = 64
PROMPTS = ["func ", "package main\n", "if err != nil {", "return", "for i := range n {", "// The", "type T struct {",
           "a", "var x = 1", "import (", "switch {", "case ", "}\n\n", "x[i]", "fmt.Println(", "defer ", "const ", "go ",
           "map[string]int", "// Package strings"]
SCRIPTS = [(0x21, 0x7e), (0xa1, 0x17f), (0x391, 0x3c9), (0x410, 0x44f), (0x5d0, 0x5ea), (0x621, 0x64a), (0x905, 0x939),
           (0x3041, 0x3093), (0x4e00, 0x9fa5), (0xac00, 0xd7a3), (0x1f600, 0x1f64f), (0x300, 0x33f), (0x660, 0x669)]
SPACES = [" ", " ", "  ", "\n", "\n\n", "\t", " \n ", "\r\n", "   ", "\u00a0", "\u3000"]
ENDINGS = ["'s", "'t", "'RE", "'Ve", "'m", "'LL", "'d", "'x", "'", "", "", ""]


def texts(n):
    """Texts of letters of many scripts, digits, contractions and white space."""
    rng = random.Random(5)
    for _ in range(n):
        parts = []
        for _ in range(rng.randrange(1, 12)):
            low, high = rng.choice(SCRIPTS)
            word = "".join(chr(rng.randint(low, high)) for _ in range(rng.randrange(1, 9)))
            number = str(rng.randrange(10 ** rng.randrange(1, 9)))
            parts += [rng.choice([word, word, number]) + rng.choice(ENDINGS), rng.choice(SPACES)]
        yield "".join(parts)


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait(url):
    for _ in range(600):
        try:
            return urllib.request.urlopen(url).read()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise SystemExit(url + " does not answer")


def serve_llama(path):
    p = xllamacpp.CommonParams()
    p.model.path, p.port, p.n_parallel, p.n_ctx = path, free_port(), 1, 128
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 2
    p.fit_params, p.cache_ram_mib = False, 0
    p.cache_type_k = p.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    p.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return xllamacpp.Server(p)


def check(anneal, run, path):
    """The number of texts with other ids, and of prompts with another continuation."""
    port = free_port()
    process = subprocess.Popen([anneal, "serve", run, "--port", str(port), "-q"], stdout=subprocess.DEVNULL)
    ours = f"http://127.0.0.1:{port}"
    try:
        wait(ours + "/health")
        server = serve_llama(path)
        theirs = server.listening_address
        wait(theirs + "/health")
        ids = lambda text: post(ours + "/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]
        peer = lambda text: post(theirs + "/tokenize", {"content": text, "add_special": False})["tokens"]
        odd = [t for t in texts(1000) if ids(t) != peer(t)]
        for text in odd[:3]:
            print("  ids differ:", ascii(text), ids(text), peer(text))
        other = 0
        for prompt in PROMPTS:
            start = ids(prompt)
            a = post(ours + "/v1/completions", {"prompt": start, "max_tokens": NEW, "temperature": 0, "ignore_eos": True})
            b = post(theirs + "/completion", {"prompt": start, "n_predict": NEW, "temperature": 0, "ignore_eos": True,
                                              "return_tokens": True, "cache_prompt": False})
            text, want = a["choices"][0]["text"], post(ours + "/detokenize", {"tokens": b["tokens"]})["prompt"]
            if text != want:
                other += 1
                print("  greedy differs:", ascii(prompt), ascii(text[:60]), ascii(want[:60]))
        return len(odd), other
    finally:
        process.terminate()
        process.wait()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--anneal", required=True)
    p.add_argument("pairs", nargs="+", metavar="RUN=FILE.gguf")
    args = p.parse_args()
    failed = False
    for pair in args.pairs:
        run, path = pair.split("=", 1)
        odd, other = check(args.anneal, run, path)
        print(f"{run}: {odd} of 1,000 texts with other ids, {other} of {len(PROMPTS)} prompts continued otherwise", flush=True)
        failed |= odd + other > 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
