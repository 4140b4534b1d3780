#!/usr/bin/env python3
"""Times Hugging Face tokenizers and tiktoken on the Go standard library's source, beside `anneal bench tokenizer`.

    bench_tokenizers.py [--vocab 8192] [--threads 1] [--anneal ./anneal]

Trains a byte-level BPE tokenizer with the GPT-2 splitter (Hugging Face), then encodes the same files with it and with
tiktoken given the same merges. "cold" is the first pass of a fresh encoder, "warm" the best of the later ones, both on one thread. One call per
file, megabytes are 10^6 bytes of text. Prints one JSON object; with --anneal it holds anneal's own figures, too.
"""
import argparse
import json
import os
import subprocess
import time

GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--go", default="go", help="the go command, which knows where its sources are")
    p.add_argument("--vocab", type=int, default=8192)
    p.add_argument("--threads", type=int, default=1, help="threads for training; encoding uses one")
    p.add_argument("--passes", type=int, default=2)
    p.add_argument("--limit-mb", type=float, default=20, help="stop reading after this much text")
    p.add_argument("--anneal", help="path of the anneal binary, to run beside")
    return p.parse_args()


def go_sources(go, limit):
    """Texts of the .go files under GOROOT/src in path order, until limit bytes."""
    root = subprocess.run([go, "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
    paths = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(root, "src")) for f in files if f.endswith(".go")]
    texts, size = [], 0
    for path in sorted(paths):
        with open(path, encoding="utf-8", errors="replace") as f:
            texts.append(f.read())
        size += len(texts[-1].encode())
        if size >= limit:
            break
    return texts, size


def train(texts, vocab):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer, length=len(texts))
    return tokenizer


def byte_of_character():
    """The printable stand-ins of the byte-level format, back to bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {chr(c): b for b, c in [*((b, b) for b in printable), *((b, 256 + i) for i, b in enumerate(others))]}


def as_tiktoken(tokenizer):
    """The same merges as a tiktoken encoding: ids in order of creation are ranks."""
    import tiktoken

    back = byte_of_character()
    ranks = {bytes(back[c] for c in token): rank for token, rank in tokenizer.get_vocab().items()}
    return tiktoken.Encoding("trained", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={})


def encode_speed(fresh, texts, size, passes):
    """fresh() gives a function text -> number of tokens. Returns MB/s cold and warm, and bytes per token."""
    encode, times = fresh(), []
    for _ in range(passes + 1):
        start = time.perf_counter()
        count = sum(encode(t) for t in texts)
        times.append(time.perf_counter() - start)
    return {"encode_cold_mb_per_second": round(size / times[0] / 1e6, 2), "encode_warm_mb_per_second": round(size / min(times[1:]) / 1e6, 2),
            "bytes_per_token": round(size / count, 4)}


def encode_speeds(tokenizer, texts, size, passes):
    """Of Hugging Face tokenizers and of tiktoken with the same merges."""
    model = tokenizer.to_str()

    def fresh_hf():
        from tokenizers import Tokenizer
        fresh = Tokenizer.from_str(model)
        return lambda text: len(fresh.encode(text).ids)

    def fresh_tiktoken():
        encoding = as_tiktoken(tokenizer)
        return lambda text: len(encoding.encode_ordinary(text))

    return encode_speed(fresh_hf, texts, size, passes), encode_speed(fresh_tiktoken, texts, size, passes)


def main():
    a = parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(a.threads)
    texts, size = go_sources(a.go, a.limit_mb * 1e6)
    start = time.perf_counter()
    tokenizer = train(texts, a.vocab)
    seconds = time.perf_counter() - start
    hf, tiktoken = encode_speeds(tokenizer, texts, size, a.passes)
    result = {
        "files": len(texts), "bytes": size, "vocab": tokenizer.get_vocab_size(), "threads": a.threads,
        "tokenizers": {"train_seconds": round(seconds, 2), "train_mb_per_second": round(size / seconds / 1e6, 2),
                       **hf},
        "tiktoken": tiktoken,
    }
    if a.anneal:
        flags = ["--vocab", str(a.vocab), "--mb", str(int(a.limit_mb)), "--pattern", "gpt2", "--threads", str(a.threads), "--json"]
        out = subprocess.run([a.anneal, "bench", "tokenizer", *flags], capture_output=True, text=True, check=True).stdout
        result["anneal"] = json.loads(out.strip().splitlines()[-1])
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
