#!/usr/bin/env python3
"""Times servers of completions by turns: the time to the first token, and tokens/s of all clients together.

    bench_serve.py anneal=http://127.0.0.1:8080/v1 llama.cpp=http://127.0.0.1:8081/v1 --prompts FILE

Start the servers first, with the same model, threads and slots, such as

    anneal serve RUN --threads 2 --port 8080 --sequences 16
    bench_serve.py --llama MODEL.gguf --threads 2 --port 8081     # or: llama-server -m MODEL.gguf -t 2 -np 16 --port 8081

--llama serves a model with the server of llama.cpp inside the package xllamacpp, until it is interrupted.

Of every number of clients (1, 4 and 16) it times the servers one after the other, several rounds, and prints medians
and ratios to the last server. Each client sends one request after another: greedy, without an end, as a stream. Timing
needs only Python's library. Prompts are lines of a file, or a few built-in lines.
"""
import argparse
import json
import statistics
import threading
import time
import urllib.error
import urllib.request

LINES = ["func main() {", "package bytes", "if err != nil {", "type Reader struct {", "for i := range n {"]


def post(url, body, key):
    head = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head), timeout=600)


def ask(url, model, prompt, tokens, key):
    """Sends one request; returns the seconds to the first text, and how many events had text."""
    start, first, events = time.monotonic(), None, 0
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True, "ignore_eos": True}
    with post(url + "/completions", body, key) as answer:
        for line in answer:
            if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
                if any(c.get("text") for c in json.loads(line[6:])["choices"]):
                    events += 1
                    first = first or time.monotonic() - start
    return first or time.monotonic() - start, events


def load(url, model, prompts, clients, requests, tokens, key):
    """The median time to the first token, and tokens/s, of so many clients. Tokens are those that were asked for: a
    stream may have several in an event."""
    firsts, lock = [], threading.Lock()

    def client(number):
        for i in range(requests):
            first, _ = ask(url, model, prompts[(number * requests + i) % len(prompts)], tokens, key)
            with lock:
                firsts.append(first)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    start = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return statistics.median(firsts), clients * requests * tokens / (time.monotonic() - start)


def model_of(url, key, patience=60):
    """The name of the model that a server has, which may be starting."""
    request = urllib.request.Request(url + "/models", headers={"Authorization": "Bearer " + key})
    begin = time.monotonic()
    while True:
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["data"][0]["id"]
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() - begin > patience:
                raise
            time.sleep(0.2)


def serve_llama(model, threads, port, slots, context):
    """Serves a model with llama.cpp, with as many tokens for each slot as anneal serve has."""
    import xllamacpp

    p = xllamacpp.CommonParams()
    p.model.path, p.port, p.n_parallel, p.n_ctx = model, port, slots, slots * context
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
    p.fit_params, p.cache_ram_mib = False, 0
    server = xllamacpp.Server(p)
    print(server.listening_address, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("servers", nargs="*", metavar="NAME=URL")
    p.add_argument("--llama", metavar="GGUF", help="serve this model instead, with llama.cpp")
    p.add_argument("--threads", type=int, default=2, help="of --llama")
    p.add_argument("--port", type=int, default=8081, help="of --llama")
    p.add_argument("--slots", type=int, default=16, help="of --llama")
    p.add_argument("--context", type=int, default=512, help="tokens of a slot of --llama")
    p.add_argument("--prompts")
    p.add_argument("--clients", default="1,4,16")
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--requests", type=int, default=2, help="of each client in a round")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--key", default="none")
    args = p.parse_args()
    if args.llama:
        return serve_llama(args.llama, args.threads, args.port, args.slots, args.context)
    if not args.servers:
        p.error("no server to time")
    prompts = LINES
    if args.prompts:
        with open(args.prompts) as f:
            prompts = [line.rstrip("\n") for line in f if line.strip()]
    servers = []
    for text in args.servers:
        name, url = text.split("=", 1)
        servers.append((name, url, model_of(url, args.key)))
    print(f"{'clients':>7}  {'server':12}{'first token':>12}{'tokens/s':>10}{'ratio':>8}", flush=True)
    for clients in map(int, args.clients.split(",")):
        found = {name: [] for name, _, _ in servers}
        for turn in range(args.rounds + 1):
            for name, url, model in servers:
                figures = load(url, model, prompts, clients, args.requests, args.tokens, args.key)
                if turn > 0:  # the first round warms up
                    found[name].append(figures)
        rates = {name: statistics.median(r for _, r in list_) for name, list_ in found.items()}
        for name, list_ in found.items():
            first = statistics.median(f for f, _ in list_)
            ratio = rates[name] / rates[servers[-1][0]]
            print(f"{clients:7}  {name:12}{first * 1000:9.1f} ms{rates[name]:10.1f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
