#!/usr/bin/env python3
"""Checks `anneal serve` with the clients that people use: lm-evaluation-harness and the openai package.

    check_serve.py --anneal ./anneal RUN [--items 60]

Starts the server on a free port of this machine. The harness scores a task of multiple choice (which this script makes)
over HTTP with --model local-completions, whose tokenizer is the server's, and once more with --model hf on the export of
the same run. Every log-likelihood, whether it is greedy, and the accuracies are compared. Then the openai client reads a
stream, whose text must be that of the same request without one, and SIGTERM must end the server with exit code 0.

Needs lm_eval[api] (made with 0.4.13), openai, transformers and torch; the run should be of precision fp32. Exit code 1 if
a log-likelihood differs by more than 1e-4 of itself, or of 1 if it is smaller, or if anything else differs.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["OPENAI_API_KEY"] = "none"

TASK = """task: words
dataset_path: json
dataset_kwargs:
  data_files: {test: DIR/words.jsonl}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
  - metric: acc_norm
"""

WORDS = """func package import return string error byte range struct type const slice buffer reader writer table index value
token field channel mutex if err != nil { } ( ) := é 漢字 🙂""".split()


def make(directory, items):
    """Writes the task: questions of many lengths, with two to four answers."""
    r = random.Random(3)
    with open(os.path.join(directory, "words.jsonl"), "w") as f:
        for _ in range(items):
            choices = [" ".join(r.choices(WORDS, k=r.randint(1, 5))) for _ in range(r.randint(2, 4))]
            f.write(json.dumps({"question": " ".join(r.choices(WORDS, k=r.randint(2, 20))), "choices": choices,
                                "answer": r.randrange(len(choices))}) + "\n")
    with open(os.path.join(directory, "words.yaml"), "w") as f:
        f.write(TASK.replace("DIR", directory))


def evaluate(directory, model, model_args, **more):
    """What the harness makes of the task."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    return lm_eval.simple_evaluate(
        model=model, model_args=model_args, tasks=["words"], log_samples=True, bootstrap_iters=0,
        task_manager=TaskManager(include_path=directory, include_defaults=False), **more)


def compare(served, exported):
    """Prints how the two results compare; returns whether they are the same."""
    worst, requests, differ = 0.0, 0, 0
    for a, b in zip(served["samples"]["words"], exported["samples"]["words"], strict=True):
        for (x, greedy), (y, expected) in zip(a["filtered_resps"], b["filtered_resps"], strict=True):
            worst = max(worst, abs(x - y) / max(abs(y), 1))
            requests, differ = requests + 1, differ + (greedy != expected)
    figures = [(m, served["results"]["words"][m], exported["results"]["words"][m]) for m in ("acc,none", "acc_norm,none")]
    for metric, x, y in figures:
        print(f"{metric:14} served {x:.4f}   hf {y:.4f}")
    print(f"{requests} log-likelihoods, the worst {worst:.1e} apart; {differ} differ in whether they are greedy")
    return worst <= 1e-4 and differ == 0 and all(x == y for _, x, y in figures)


def stream(address):
    """Reads a stream with the openai client; returns whether its text is that of the whole answer."""
    import openai

    client = openai.OpenAI(base_url=f"http://{address}/v1")
    model = client.models.list().data[0].id
    request = dict(model=model, prompt="func main", max_tokens=40, seed=7, temperature=0.9)
    whole = client.completions.create(**request)
    text, usage, chunks = "", None, 0
    for chunk in client.completions.create(**request, stream=True, stream_options={"include_usage": True}):
        text += "".join(c.text for c in chunk.choices)
        usage, chunks = chunk.usage or usage, chunks + 1
    same = text == whole.choices[0].text and usage == whole.usage
    print(f"openai {openai.__version__}: a stream of {chunks} events, {usage.completion_tokens} tokens; "
          f"{'the same as' if same else 'OTHER than'} the whole answer")
    return same


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("run")
    p.add_argument("--anneal", default="./anneal")
    p.add_argument("--items", type=int, default=60)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        make(work, args.items)
        export = os.path.join(work, "export")
        subprocess.run([args.anneal, "export", args.run, export], check=True, stdout=subprocess.DEVNULL)
        server = subprocess.Popen([args.anneal, "serve", args.run, "--port", "0", "--name", "m"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().strip()
            served = evaluate(work, "local-completions", dict(
                model="m", base_url=url, tokenizer_backend="remote", num_concurrent=4, batch_size=8, max_length=256,
                tokenized_requests=True))
            exported = evaluate(work, "hf", dict(
                pretrained=export, dtype="float32", add_bos_token=False), device="cpu", batch_size=8)
            good = compare(served, exported)
            good = stream(url.removeprefix("http://").removesuffix("/v1/completions")) and good
        finally:
            server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
        print(f"SIGTERM: exit code {code}")
    sys.exit(0 if good and code == 0 else 1)


if __name__ == "__main__":
    main()
