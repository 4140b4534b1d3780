#!/usr/bin/env python3
"""Checks that lm-evaluation-harness (--model hf) makes of an export what `anneal eval --tasks` makes of its run.

    check_tasks.py --anneal ./anneal RUN EXPORT TASKS       checks a directory; call it from where data_files start
    check_tasks.py --anneal ./anneal RUN EXPORT --make DIR  writes tasks with difficult texts to DIR, and checks these

Needs lm_eval (made with 0.4.13), transformers and torch. The run is of precision fp32; the harness computes in FP32 on
the CPU. Of each task it compares every request's text, its log-likelihood and whether it is greedy, every text written,
and all figures with their standard errors. Prints a line for each task; exit code 1 if a log-likelihood differs by more
than 1e-4 of itself, or of 1 if it is smaller, or if anything else differs.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

HEAD = """task: NAME
dataset_path: json
dataset_kwargs:
  data_files: {test: DIR/NAME.jsonl, dev: DIR/dev.jsonl}
test_split: test
"""

# By name: the rest of the file. NAME.jsonl is made below.
TASKS = {
    "zero": r"""output_type: multiple_choice
doc_to_text: "Question: {{question.strip()}}\nAnswer:"
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
  - metric: acc_norm
  - metric: acc_bytes
  - metric: acc_mutual_info
metadata: {version: 1.0}
""",
    "shots": r"""output_type: multiple_choice
fewshot_split: dev
num_fewshot: 3
description: "Questions about {{subject}}.\n\n"
doc_to_text: "{{question | trim}}? "
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
target_delimiter: ""
fewshot_delimiter: "\n"
""",
    "same": r"""output_type: multiple_choice
fewshot_split: test
num_fewshot: 2
gen_prefix: "It is"
doc_to_text: "{% for c in choices[:2] %}{{loop.index}}. {{c}}\n{% endfor %}{{question[:30]}}:"
doc_to_choice: ["aa", "b b", "c"]
doc_to_target: 0
metric_list:
  - metric: acc
  - metric: exact_match
""",
    "last": r"""output_type: loglikelihood
doc_to_text: "{{text.split(' ')[:-1] | join(' ')}}"
doc_to_target: "{{' ' + text.split(' ')[-1]}}"
""",
    "nothing": r"""output_type: loglikelihood
doc_to_text: ""
doc_to_target: "{{text[:40]}}"
""",
    "whole": r"""output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: text
""",
    "write": r"""output_type: generate_until
fewshot_split: test
num_fewshot: 1
fewshot_config: {sampler: first_n}
doc_to_text: "{{text[:20]}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\n"], max_gen_toks: 16, do_sample: false}
filter_list:
  - name: strict
    filter: [{function: take_first}]
  - name: word
    filter:
      - {function: regex, regex_pattern: "(\\w+)", group_select: -1}
      - {function: take_first}
metric_list:
  - metric: exact_match
    ignore_case: true
    ignore_punctuation: true
    regexes_to_ignore: [","]
""",
}

WORDS = """func package import return string error byte range struct type const slice buffer reader writer table index value
token field channel mutex if err != nil { } ( ) := é 漢字 🙂""".split()


def make(directory):
    """Writes the tasks with texts of many lengths, some longer than a small model's context."""
    r = random.Random(7)

    def text(low, high):
        return " ".join(r.choice(WORDS) for _ in range(r.randint(low, high)))

    def item(long):
        choices = [text(1, 6) for _ in range(r.choice([2, 4, 4]))]
        return {
            "question": " " * r.randrange(3) + text(3, long) + " \n" * r.randrange(2), "choices": choices,
            "answer": r.randrange(len(choices)), "subject": r.choice(["Go", "é"]), "text": text(2, 4 * long),
        }

    os.makedirs(directory, exist_ok=True)
    for name, n in [("dev", 40)] + [(name, 12 if name == "write" else 50) for name in TASKS]:
        with open(os.path.join(directory, name + ".jsonl"), "w") as f:
            for _ in range(n):
                f.write(json.dumps(item(20 if name in ("dev", "same") else 60)) + "\n")
    for name, rest in TASKS.items():
        with open(os.path.join(directory, name + ".yaml"), "w") as f:
            f.write((HEAD + rest).replace("NAME", name).replace("DIR", os.path.abspath(directory)))


def anneal_says(args):
    """The results and the samples of `anneal eval`."""
    with tempfile.TemporaryDirectory() as work:
        samples = os.path.join(work, "samples.jsonl")
        out = subprocess.run([args.anneal, "--json", "eval", args.run, "--tasks", args.tasks, "--samples", samples],
                             check=True, stdout=subprocess.PIPE).stdout
        with open(samples) as f:
            return json.loads(out), [json.loads(line) for line in f]


def harness_says(args, names):
    """What simple_evaluate returns for the export."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    where = args.tasks if os.path.isdir(args.tasks) else os.path.dirname(os.path.abspath(args.tasks))
    return lm_eval.simple_evaluate(
        model="hf", model_args={"pretrained": args.export, "dtype": "float32"}, tasks=names, device="cpu", batch_size=8,
        task_manager=TaskManager(include_path=where, include_defaults=False), log_samples=True, bootstrap_iters=1000)


def compare(task, ours, theirs):
    """Prints how a task compares; returns whether it is the same."""
    worst, share, requests, differ = 0.0, 0.0, 0, []
    mine = {(s["item"], s["filter"]): s for s in ours}
    for s in theirs["samples"][task["task"]]:
        me = mine.pop((s["doc_id"], s["filter"]))
        for i, (arguments, answer) in enumerate(zip(s["arguments"], s["resps"], strict=True)):
            requests += 1
            mine_args = me["arguments"][i]
            if isinstance(answer[0], str):
                text = mine_args["context"], me["text"], me["filtered"]
                want = arguments[0], answer[0], s["filtered_resps"][0]
            else:
                rolling = task["output_type"] == "loglikelihood_rolling"
                ll, greedy = (answer[0], True) if rolling else answer[0]
                text, want = (mine_args["context"], mine_args.get("continuation", "")), tuple(arguments)
                want = ("", want[0]) if rolling else want
                off = abs(ll - mine_args["log_likelihood"])
                worst, share = max(worst, off), max(share, off / max(1, abs(ll)))
                if not rolling and greedy != mine_args["greedy"]:
                    differ.append(f"item {s['doc_id']}: greedy {greedy}")
            if text != want:
                differ.append(f"item {s['doc_id']}: {text!r}, but {want!r}")
    if mine:
        differ.append(f"{len(mine)} items that the harness lacks")
    figures = []
    for m in task["metrics"]:
        want = theirs["results"][task["task"]][f"{m['metric']},{m['filter']}"]
        error = theirs["results"][task["task"]][f"{m['metric']}_stderr,{m['filter']}"]
        figures.append(f"{m['metric']} {m['value']:.6g} and {want:.6g}")
        if abs(m["value"] - want) > 1e-4 * max(1, abs(want)):
            differ.append(figures[-1])
        if not isinstance(error, str) and m["stderr"] is not None:
            drawn = m["metric"] == "perplexity"  # a bootstrap on both sides, which knows little of a large one
            if abs(m["stderr"] - error) > (0.2 * error if drawn else 1e-6) and not (drawn and error > 0.2 * want):
                differ.append(f"standard error of {m['metric']}: {m['stderr']} and {error}")
    print(f"{task['task']:10} {requests:5} requests, log-likelihoods within {worst:.1e} nats, "
          f"{share:.1e} of themselves; {'; '.join(figures)}", flush=True)
    for d in differ[:5]:
        print("   differs:", d)
    return share <= 1e-4 and not differ


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--anneal", required=True)
    p.add_argument("run")
    p.add_argument("export")
    p.add_argument("tasks", nargs="?")
    p.add_argument("--make", metavar="DIR")
    args = p.parse_args()
    if args.make:
        make(args.make)
        args.tasks = args.make
    results, samples = anneal_says(args)
    theirs = harness_says(args, [t["task"] for t in results["tasks"]])
    good = [compare(t, [s for s in samples if s["task"] == t["task"]], theirs) for t in results["tasks"]]
    print(f"{sum(good)} of {len(good)} tasks are the same")
    sys.exit(0 if all(good) else 1)


main()
