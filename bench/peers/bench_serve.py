#!/usr/bin/env python3
"""Times servers of completions by turns: the time to the first token, and tokens/s of all clients together.

    bench_serve.py anneal=http://127.0.0.1:8080/v1 llama.cpp=http://127.0.0.1:8081/v1 --prompts FILE

Start the servers first, with the same model, threads and slots, such as

    anneal serve RUN --port 8080 --sequences 16
    python -m llama_cpp.server --model MODEL.gguf --port 8081     # or: llama-server -m MODEL.gguf -np 16 --port 8081

Of every number of clients (1, 4 and 16) it times the servers one after the other, several rounds, and prints medians
and ratios to the last server. Each client sends one request after another: greedy, without an end, as a stream. Needs
only Python's library. Prompts are lines of a file, or a few built-in lines.
"""
import argparse
import json
import statistics
import threading
import time
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


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("servers", nargs="+", metavar="NAME=URL")
    p.add_argument("--prompts")
    p.add_argument("--clients", default="1,4,16")
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--requests", type=int, default=2, help="of each client in a round")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--key", default="none")
    args = p.parse_args()
    prompts = LINES
    if args.prompts:
        with open(args.prompts) as f:
            prompts = [line.rstrip("\n") for line in f if line.strip()]
    servers = []
    for text in args.servers:
        name, url = text.split("=", 1)
        with urllib.request.urlopen(urllib.request.Request(
                url + "/models", headers={"Authorization": "Bearer " + args.key})) as answer:
            servers.append((name, url, json.load(answer)["data"][0]["id"]))
    print(f"{'clients':>7}  {'server':12}{'first token':>12}{'tokens/s':>10}{'ratio':>8}")
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
            print(f"{clients:7}  {name:12}{first * 1000:9.1f} ms{rates[name]:10.1f}{rates[name] / rates[servers[-1][0]]:8.2f}")


if __name__ == "__main__":
    main()
