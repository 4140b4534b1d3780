#!/usr/bin/env python3
"""Makes golden.gguf, which the format's own package (gguf, from PyPI) writes: an entry of each kind of metadata, and one
tensor in each type that Go encodes. golden_test.go repeats the formula.

    make_golden.py OUT.gguf
"""
import sys

import gguf
import numpy as np

ROWS, COLS = 3, 64


def values():
    """Values over many magnitudes, with halves of a step, zeros and a block of zeros."""
    i = np.arange(ROWS * COLS, dtype=np.float64)
    x = ((i * 7919) % 251 - 125) * 2.0 ** ((i * 31) % 23 - 14)
    x[64:96] = 0
    x[96:128] = (i[96:128] - 112) / 2 * 1.0
    x[96] = 127.0
    return x.astype(np.float32).reshape(ROWS, COLS)


def main():
    w = gguf.GGUFWriter(sys.argv[1], "golden")
    w.add_uint8("k.u8", 200)
    w.add_int8("k.i8", -100)
    w.add_uint16("k.u16", 60000)
    w.add_int16("k.i16", -30000)
    w.add_uint32("k.u32", 4000000000)
    w.add_int32("k.i32", -2000000000)
    w.add_uint64("k.u64", 1 << 63)
    w.add_int64("k.i64", -(1 << 62))
    w.add_float32("k.f32", 0.1)
    w.add_float64("k.f64", 0.1)
    w.add_bool("k.bool", True)
    w.add_string("k.string", "é漢🙂")
    w.add_array("k.strings", ["", "a", "ĠĊ"])
    w.add_array("k.ints", [-1, 0, 1])
    w.add_array("k.floats", [0.5, -0.25])
    w.add_array("k.bools", [True, False])
    x = values()
    for name, kind in [("f32", "F32"), ("f16", "F16"), ("bf16", "BF16"), ("q8_0", "Q8_0")]:
        t = gguf.GGMLQuantizationType[kind]
        w.add_tensor("x." + name, gguf.quants.quantize(x, t), raw_dtype=t)
    w.add_tensor("one", np.arange(5, dtype=np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main()
