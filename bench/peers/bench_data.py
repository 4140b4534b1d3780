#!/usr/bin/env python3
"""Times datatrove, text-dedup, Hugging Face tokenizers and tiktoken beside `anneal bench data`, on one core.

    bench_data.py [--limit-mb 4] [--anneal ./anneal]

Text is the Go standard library's source, and for the filters the prose of its comments, as in `anneal bench data`. Peers do the
work alone: no reading, no writing, no clusters, where anneal's MinHash goes on to clusters and its pipeline to shards. datatrove
cuts words with spaCy, as it does by default. text-dedup is measured on its signatures, 112 permutations of word 5-grams.
Megabytes are 10^6 bytes. Prints one JSON object.
"""
import argparse
import json
import os
import subprocess
import time

import numpy as np

import bench_tokenizers as tok


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--go", default="go", help="the go command, which knows where its sources are")
    p.add_argument("--limit-mb", type=float, default=4, help="text for each peer; they are slow")
    p.add_argument("--anneal", help="path of the anneal binary, to run beside")
    return p.parse_args()


def prose(texts):
    """Comments in documents of at least 4 KiB."""
    docs, doc = [], []
    for text in texts:
        doc += [line.strip()[3:] for line in text.splitlines() if line.strip().startswith("// ")]
        if sum(map(len, doc)) >= 4096:
            docs.append("\n".join(doc) + "\n")
            doc = []
    return docs


def rate(texts, limit, work):
    """Megabytes a second of work(text) over texts, up to limit bytes."""
    size, start = 0, time.process_time()
    for text in texts:
        work(text)
        size += len(text.encode())
        if size >= limit:
            break
    return round(size / 1e6 / (time.process_time() - start), 3)


def datatrove(source, comments, limit):
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
    from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
    from datatrove.pipeline.formatters.pii import PIIFormatter

    signer = MinhashDedupSignature("unused", MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8))
    filters = [GopherRepetitionFilter(), GopherQualityFilter(), C4QualityFilter(filter_no_terminal_punct=False), FineWebQualityFilter()]
    pii = PIIFormatter()

    def clean(text):
        doc = Document(text=text, id="0")
        for f in filters:
            f.filter(doc)
        pii.format(doc.text)

    def sign(text):
        shingles = signer.get_shingles(text)
        if len(shingles):
            signer.get_signature(shingles)

    clean(comments[0]), sign(comments[0])  # loads what is loaded once
    return {"minhash_mb_per_second": rate(source, limit, sign), "filters_mb_per_second": rate(comments, limit, clean)}


def text_dedup(source, limit):
    from text_dedup.minhash import embed_func
    from text_dedup.utils import xxh3_32hash

    rng, prime = np.random.RandomState(42), np.uint64((1 << 61) - 1)
    perms = (rng.randint(1, prime, size=112, dtype=np.uint64), rng.randint(0, prime, size=112, dtype=np.uint64))
    ranges = [(i, i + 8) for i in range(0, 112, 8)]
    return {"minhash_mb_per_second": rate(source, limit, lambda text: embed_func(
        text, 0, num_perm=112, ngram_size=5, min_length=0, hashranges=ranges, permutations=perms, hash_func=xxh3_32hash,
        dtype=np.uint64, max_hash=np.uint32((1 << 32) - 1), modulo_prime=prime))}


def main():
    a = parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"
    texts, size = tok.go_sources(a.go, a.limit_mb * 1e6)
    everything, all_bytes = tok.go_sources(a.go, 120e6)
    limit = a.limit_mb * 1e6

    start = time.perf_counter()
    trained = tok.train(everything, 32768)
    seconds = time.perf_counter() - start
    hf, tiktoken = tok.encode_speeds(trained, texts, size, 2)
    result = {
        "limit_bytes": int(limit),
        "datatrove": datatrove(texts, prose(everything), limit),
        "text_dedup": text_dedup(texts, limit),
        "tokenizers": {**hf, "bpe_train_seconds": round(seconds, 2), "bpe_train_bytes": all_bytes},
        "tiktoken": tiktoken,
    }
    if a.anneal:
        out = subprocess.run([a.anneal, "bench", "data", "--json"], capture_output=True, text=True, check=True).stdout
        result["anneal"] = json.loads(out.strip().splitlines()[-1])
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
