"""Rounding goldens of every narrow format, made by ml_dtypes and numpy: python make_formats.py > formats.json

The float32 patterns are upper<<16 | low for every upper half and a few lower halves around the places where formats round.
A hash is the first 16 hex digits of SHA-256 over the results of the 65,536 upper halves, little-endian, NaN as one code.
"""
import hashlib
import json

import ml_dtypes
import numpy as np

LOWS = [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
FORMATS = {
    "bf16": (ml_dtypes.bfloat16, np.uint16, 0x7FC0),
    "f16": (np.float16, np.uint16, 0x7E00),
    "e4m3": (ml_dtypes.float8_e4m3fn, np.uint8, 0x7F),
    "e5m2": (ml_dtypes.float8_e5m2, np.uint8, 0x7E),
}


def digest(a):
    return hashlib.sha256(a.tobytes()).hexdigest()[:16]


def tf32(x):
    """Round to 11 significant bits, ties away from zero, in float64 arithmetic; infinities and NaN pass."""
    with np.errstate(invalid="ignore"):
        m, e = np.frexp(np.abs(x.astype(np.float64)))
        e = np.maximum(e, -125)  # float32 subnormals have fixed places
        m = np.ldexp(np.abs(x.astype(np.float64)), -e)
        r = np.copysign(np.ldexp(np.floor(m * 2**11 + 0.5), e - 11), x.astype(np.float64))
        r = np.where(np.isfinite(x), r, x.astype(np.float64))
    with np.errstate(over="ignore"):
        return r.astype(np.float32)


out = {"lows": LOWS, "round": {}, "widen": {}}
upper = np.arange(1 << 16, dtype=np.uint32) << 16
for name, (dtype, code, nan) in FORMATS.items():
    hashes = []
    for low in LOWS:
        x = (upper | np.uint32(low)).view(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            y = x.astype(dtype)
        c = y.view(code).copy()
        c[np.isnan(x)] = nan
        c[np.isnan(y.astype(np.float32))] = nan
        hashes.append(digest(c))
    out["round"][name] = hashes
    codes = np.arange(1 << (8 * np.dtype(code).itemsize), dtype=code)
    wide = codes.view(dtype).astype(np.float32)
    bits = wide.view(np.uint32).copy()
    bits[np.isnan(wide)] = 0x7FC00000
    out["widen"][name] = digest(bits)
hashes = []
for low in LOWS:
    x = (upper | np.uint32(low)).view(np.float32)
    bits = tf32(x).view(np.uint32).copy()
    bits[np.isnan(x)] = 0x7FC00000
    hashes.append(digest(bits))
out["round"]["tf32"] = hashes
print(json.dumps(out, indent=1))
