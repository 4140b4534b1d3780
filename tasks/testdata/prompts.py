"""Writes prompts.json: what lm-evaluation-harness asks of the items of the tasks in testdata/tasks, and random numbers.

Run in testdata/tasks: python ../prompts.py > ../prompts.json, with lm_eval 0.4.13.
"""

import json
import random

from lm_eval.tasks import TaskManager

NAMES = ["zero", "shots", "same", "first", "whole", "write"]


def main():
    loaded = TaskManager(include_path=".", include_defaults=False).load(NAMES)["tasks"]
    requests = {}
    for name in NAMES:
        task = loaded[name]
        task.set_fewshot_seed(seed=1234)
        task.build_all_requests()
        requests[name] = [[a for a in r.args if isinstance(a, str)] for r in task.instances]
    draws = []
    for seed, n, k in [(1234, 10, 3), (1234, 100, 5), (1234, 22, 6), (1234, 1000, 40), (7, 5, 5), (0, 300, 20)]:
        r = random.Random(seed)
        draws.append({"seed": seed, "n": n, "k": k, "twice": [r.sample(range(n), k), r.sample(range(n), k)]})
    print(json.dumps({"requests": requests, "draws": draws}, ensure_ascii=False, indent=1))


main()
