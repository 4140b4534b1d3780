"""Trains small models with fastText (fasttext-wheel 0.9.2, numpy < 2) on generated text and writes them, with what it
predicts, beside this file: python golden.py.

What our trainer is held against: `go test -run Training -update DIR` writes our models (ours-*.bin) beside this file and
lines to learn to DIR; then `python golden.py ours DIR` writes what the original predicts with our models, and the accuracy it
reaches on the lines."""

import hashlib
import json
import os
import random
import sys
import tempfile

import fasttext

HERE = os.path.dirname(os.path.abspath(__file__))
fasttext.FastText.eprint = lambda x: None


def words(rng, n, letters):
    return ["".join(rng.choice(letters) for _ in range(rng.randint(1, 7))) for _ in range(n)]


def corpus(seed, labels, lines, n=24):
    """Each label prefers words of its own; all share some. One alphabet has letters of two and three bytes."""
    rng = random.Random(seed)
    shared = words(rng, n, "etaoinshr")
    own = {l: words(rng, n, "abcdefgh" if i % 2 else "klmnäöü語") for i, l in enumerate(labels)}
    out = []
    for i in range(lines):
        chosen = [labels[i % len(labels)]]
        if rng.random() < 0.1:
            chosen.append(rng.choice(labels))
        text = [rng.choice(own[rng.choice(chosen)] if rng.random() < 0.4 else shared) for _ in range(rng.randint(1, 12))]
        out.append(" ".join(["__label__" + l for l in chosen] + text))
    return out, shared, own


def queries(seed, shared, own):
    rng = random.Random(seed)
    pool = shared + [w for ws in own.values() for w in ws]
    out = ["", " ", "\t\t", "</s>", "unknown", "x", "é", pool[0], "__label__a " + pool[1], "__label__unknown " + pool[2],
           pool[3] + " </s> " + pool[30], " ".join(pool[:40]), "\u00a0" + pool[4] + "\v" + pool[5] + "\0" + pool[6] + "\r",
           "a" * 200, "語" * 40 + " " + pool[7], "😀 👍🏽 z̈"]
    for _ in range(10):
        text = []
        for _ in range(rng.randint(1, 20)):
            w = rng.choice(pool)
            if rng.random() < 0.3:
                w = w[: rng.randint(0, len(w))] + rng.choice("abkäœ語9") + w[rng.randint(0, len(w)):]
            text.append(w)
        out.append(rng.choice([" ", "  ", "\t"]).join(text))
    return out


def predictions(model, texts):
    out = []
    for text in texts:
        case = {"text": text}
        for name, k, threshold in [("all", -1, 0.0), ("two", 2, 0.2)]:
            labels, scores = model.predict(text, k=k, threshold=threshold)
            case[name] = [[l.replace("__label__", ""), float("%.7g" % s)] for l, s in zip(labels, scores)]
        out.append(case)
    return out


def train(lines, **options):
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", newline="\n") as f:
        f.write("\n".join(lines) + "\n")
        f.flush()
        return fasttext.train_supervised(f.name, thread=1, verbose=0, **options)


def main():
    few, shared, own = corpus(1, ["a", "b", "c", "d"], 200)
    many, shared2, own2 = corpus(2, ["l%d" % i for i in range(260)], 900, 3)
    golden = {}
    with open(os.path.join(HERE, "lines.txt"), "w", encoding="utf-8", newline="\n") as f:
        f.write("\n".join(few) + "\n")

    def write(name, model, texts):
        model.save_model(os.path.join(HERE, name))
        golden[name] = predictions(model, texts)

    some = dict(dim=5, bucket=90, epoch=10, lr=0.5)
    texts = queries(3, shared, own)
    write("softmax.bin", train(few, dim=16, epoch=10, lr=0.5), texts)
    write("bigrams.bin", train(few, wordNgrams=3, loss="softmax", **some), texts)
    twelve, shared3, own3 = corpus(6, ["t%d" % i for i in range(12)], 300, 8)
    uneven = [l for i, l in enumerate(twelve) if i % 12 < 4 or i < 12 * (i % 12)]
    write("hs.bin", train(uneven, minn=2, maxn=4, loss="hs", **some), queries(7, shared3, own3))
    write("ova.bin", train(few, minn=1, maxn=3, wordNgrams=2, loss="ova", **some), texts)
    write("ns.bin", train(few, minn=3, maxn=3, loss="ns", **some), texts)
    texts2 = queries(4, shared2, own2)[:20]
    base = dict(dim=5, bucket=700, minn=2, maxn=3, wordNgrams=2, epoch=5, lr=0.5)
    plain = train(few, loss="softmax", **base)
    plain.quantize(qnorm=False)
    write("plain.ftz", plain, texts)
    pruned = train(few, loss="hs", **base)
    pruned.quantize(qnorm=True, cutoff=300)
    write("pruned.ftz", pruned, texts)
    qout = train(many, loss="softmax", dim=4, bucket=200, minn=2, maxn=2, epoch=5, lr=0.5)
    qout.quantize(qnorm=True, qout=True)
    write("qout.ftz", qout, texts2)
    for case in golden["qout.ftz"]:  # 260 labels: the best will do
        case["all"] = case["all"][:6]
    dump("golden.json", golden)


def ours(generated):
    """What the original predicts with our models, and how well it learns what ours learns."""
    _, shared, own = corpus(1, ["a", "b", "c", "d"], 200)
    texts = queries(5, shared, own)
    names = sorted(f for f in os.listdir(HERE) if f.startswith("ours-"))
    dump("ours.json", {f: predictions(fasttext.load_model(os.path.join(HERE, f)), texts) for f in names})
    train, test = os.path.join(generated, "train.txt"), os.path.join(generated, "test.txt")
    accuracy = {}
    for loss in ["softmax", "hs", "ova", "ns"]:
        accuracy[loss] = sorted(
            round(fasttext.train_supervised(train, loss=loss, lr=0.5, epoch=15, dim=16, wordNgrams=2, bucket=20000, thread=thread, seed=seed,
                                            verbose=0).test(test)[1], 4)
            for thread, seed in [(1, 0), (1, 1), (2, 2), (8, 3), (12, 4)])
    with open(train, "rb") as f:
        dump("accuracy.json", {"train_sha256": hashlib.sha256(f.read()).hexdigest(), "accuracy": accuracy})


def dump(name, v):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as f:
        text = json.dumps(v, ensure_ascii=True, separators=(",", ":"))
        f.write(text.replace('{"text"', '\n{"text"') + "\n")


if sys.argv[1:2] == ["ours"]:
    ours(sys.argv[2])
else:
    main()
