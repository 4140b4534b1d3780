"""Writes peers.json: the bytes that other systems make of a few documents of token ids.

Megatron's IndexedDatasetBuilder (megatron-core) and datatrove's TokenizedFile write their own files; nanoGPT and llm.c have
no library, so what their scripts do with NumPy is done here: prepare.py appends EOT to each document and calls tofile,
dev/data/data_common.py writes 256 int32 and the ids, EOT before each document.

    python golden.py    # needs numpy, torch, megatron-core, datatrove
"""
import importlib.metadata, json, os, tempfile
import numpy as np, torch
from datatrove.pipeline.tokens.tokenizer import TokenizedFile
from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder

rng = np.random.default_rng(7)
out = {"versions": {p: importlib.metadata.version(p) for p in ("megatron-core", "datatrove", "numpy")}, "cases": []}


def take(folder):
    files = {}
    for root, _, names in os.walk(folder):
        for n in sorted(names):
            path = os.path.join(root, n)
            files[os.path.relpath(path, folder)] = open(path, "rb").read().hex()
    return files


for vocab in (300, 65_510, 70_000):
    eot = vocab - 1
    docs = [rng.integers(0, vocab - 1, n).tolist() for n in (5, 1, 12)]
    width = np.uint16 if vocab <= 1 << 16 else np.uint32
    case = {"vocab": vocab, "eot": eot, "documents": docs}

    with tempfile.TemporaryDirectory() as d:
        b = IndexedDatasetBuilder(d + "/train.bin", dtype=DType.optimal_dtype(vocab))
        for doc in docs:
            b.add_document(torch.tensor(doc + [eot]), [len(doc) + 1])
        b.finalize(d + "/train.idx")
        case["megatron"] = take(d)

    with tempfile.TemporaryDirectory() as d:
        os.mkdir(d + "/train")
        f = TokenizedFile(d + "/train", "00000.ds", tokenizer_name_or_path="tok.json",
                          save_final_metadata=True, token_size=np.dtype(width).itemsize)
        for doc in docs:
            f.write(doc + [eot], None)
        f.close()
        case["datatrove"] = take(d)

    with tempfile.TemporaryDirectory() as d:
        np.array(sum((doc + [eot] for doc in docs), []), dtype=width).tofile(d + "/train.bin")
        case["nanogpt"] = take(d)

    with tempfile.TemporaryDirectory() as d:
        ids = np.array(sum(([eot] + doc for doc in docs), []), dtype=width)
        head = np.zeros(256, dtype=np.int32)
        head[:3] = (20240520, 1, len(ids)) if width == np.uint16 else (20240801, 7, len(ids))
        with open(d + "/train_000001.bin", "wb") as f:
            f.write(head.tobytes() + ids.tobytes())
        case["llmc"] = take(d)

    out["cases"].append(case)

json.dump(out, open(os.path.join(os.path.dirname(__file__), "peers.json"), "w"), indent=1)
