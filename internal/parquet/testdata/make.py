"""Writes the golden files of this directory with pyarrow. Run it here: python make.py

Each file has the same 120 rows; TestGoldenFiles computes them again.
"""
import datetime
import decimal
import itertools
import json
import math
import uuid
import pyarrow as pa
import pyarrow.parquet as pq

def value(i):
    return "" if i % 11 == 0 else f"document {i % 40} " + "wörd " * (i % 7)

rows = [value(i) for i in range(120)]
holed = [None if i % 5 == 3 else v for i, v in enumerate(rows)]
numbers = list(range(120))
required = pa.schema([pa.field("id", pa.int64(), False), pa.field("text", pa.string(), False)])
optional = pa.schema([pa.field("text", pa.string()), pa.field("id", pa.int64())])
nested = pa.schema([pa.field("id", pa.int64()), pa.field("meta", pa.struct([pa.field("url", pa.string()), pa.field("text", pa.string())]))])

def write(name, table, **kw):
    pq.write_table(table, name + ".parquet", row_group_size=50, data_page_size=300, write_batch_size=10, write_page_checksum=True, store_schema=False, **kw)

full = pa.table({"id": numbers, "text": rows}, schema=required)
some = pa.table({"text": holed, "id": numbers}, schema=optional)
for codec, version in itertools.product(["none", "snappy", "gzip", "zstd"], ["1.0", "2.0"]):
    write(f"dictionary-{codec}-v{version[0]}", some, compression=codec, data_page_version=version)
for encoding, version in itertools.product(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"], ["1.0", "2.0"]):
    name = encoding.lower().replace("_byte_array", "").replace("_", "-")
    write(f"{name}-v{version[0]}", full, compression="snappy", data_page_version=version, use_dictionary=False, column_encoding={"text": encoding, "id": "PLAIN"})
    write(f"{name}-null-v{version[0]}", some, compression="zstd", data_page_version=version, use_dictionary=False, column_encoding={"text": encoding, "id": "PLAIN"})
meta = [None if i % 10 == 3 else {"url": "u", "text": v} for i, v in enumerate(holed)]
write("nested", pa.table({"id": numbers, "meta": meta}, schema=nested), compression="zstd")
write("lz4", some, compression="lz4")
write("brotli", some, compression="brotli")
# The codec that LZ4_RAW has replaced: older writers put bare blocks there, as this file has them. Its number is 5, not 7.
raw = open("lz4.parquet", "rb").read()
codec = lambda n: b"\x19\x18\x04text\x15" + bytes([2 * n])
assert raw.count(codec(7)) == 3
open("lz4-bare.parquet", "wb").write(raw.replace(codec(7), codec(5)))
write("list", pa.table({"text": [[v] for v in rows]}), compression="zstd")
with pq.ParquetWriter("empty-group-null.parquet", some.schema, compression="zstd", write_page_checksum=True, store_schema=False) as w:
    for at, n in [(0, 50), (50, 0), (50, 50), (100, 20)]:  # a table of no rows becomes a row group, too
        w.write_table(some.slice(at, n))

# Other columns: every kind of value that becomes JSON, and some that do not; fields.jsonl is what is expected of a row.
UTC = datetime.timezone.utc
D = decimal.Decimal
def some_of(i, f):
    return None if i % 7 == 4 else f(i)
def instant(i, micros):
    return datetime.datetime(1969, 12, 31, 23, 59, 58) + datetime.timedelta(days=400 * i, microseconds=micros)
columns = [
    ("id", pa.field("id", pa.int64(), False), lambda i: i * 10**15 - 7),
    ("flag", pa.bool_(), lambda i: some_of(i, lambda i: i % 3 == 0)),
    ("i8", pa.int8(), lambda i: some_of(i, lambda i: i - 60)),
    ("i32", pa.field("i32", pa.int32(), False), lambda i: (-1) ** i * i * 10**7),
    ("u8", pa.uint8(), lambda i: 255 - i),
    ("u32", pa.uint32(), lambda i: 2**32 - 1 - i),
    ("u64", pa.uint64(), lambda i: 2**64 - 1 - i),
    ("f16", pa.float16(), lambda i: some_of(i, lambda i: i / 4 - 3)),
    ("f32", pa.float32(), lambda i: i / 8 - 2),
    ("f64", pa.float64(), lambda i: math.nan if i % 9 == 1 else math.inf if i % 9 == 2 else i * 0.1),
    ("dec32", pa.decimal32(5, 2), lambda i: D(i - 60) / 100),
    ("dec64", pa.decimal64(15, 3), lambda i: some_of(i, lambda i: D(i * 10**9 - 60) / 1000)),
    ("dec128", pa.decimal128(38, 10), lambda i: D(-1) ** i * D(i * 10**27) / 10**10),
    ("text", pa.string(), lambda i: holed[i]),
    ("day", pa.date32(), lambda i: instant(i, 0).date()),
    ("clock", pa.time32("ms"), lambda i: datetime.time(i % 24, i % 60, 1, i * 1000)),
    ("clock_us", pa.time64("us"), lambda i: some_of(i, lambda i: datetime.time(23, 59, i % 60, i * 7))),
    ("at", pa.timestamp("ms", "UTC"), lambda i: some_of(i, lambda i: instant(i, 500000).replace(tzinfo=UTC))),
    ("local", pa.timestamp("us"), lambda i: instant(i, i * 1001)),
    ("kind", pa.dictionary(pa.int32(), pa.string()), lambda i: ["web", "cöde", "no\ttes \"q\""][i % 3]),
    ("none", pa.null(), lambda i: None),
    ("blob", pa.binary(), lambda i: b"\x00\xff"),
    ("hash", pa.binary(4), lambda i: b"abcd"),
    ("uuid", pa.uuid(), lambda i: uuid.UUID(int=i * 10**35).bytes),
    ("tags", pa.list_(pa.string()), lambda i: some_of(i, lambda i: [None if j == 2 else f"t{j}" for j in range(i % 4)])),
    ("deep", pa.list_(pa.list_(pa.int32())), lambda i: some_of(i, lambda i: [some_of(j, lambda j: list(range(j))) for j in range(i % 6)])),
    ("meta", pa.struct([("lang", pa.string()), ("image", pa.binary()), ("page", pa.struct([("n", pa.int16()), ("urls", pa.list_(pa.string()))]))]),
        lambda i: some_of(i, lambda i: {"lang": "en", "image": b"\x00", "page": some_of(i + 1, lambda i: {"n": i, "urls": ["u"] * (i % 3)})})),
    ("spans", pa.list_(pa.struct([("from", pa.int32()), ("labels", pa.map_(pa.string(), pa.float64()))])),
        lambda i: [some_of(i + j, lambda j: {"from": j, "labels": [(f"l{k}", k / 2) for k in range(j % 3)]}) for j in range(i % 5)]),
    ("counts", pa.map_(pa.string(), pa.int64()), lambda i: some_of(i, lambda i: [(f"k{j}", None if j == 1 else j) for j in range(i % 4)])),
    ("by_id", pa.map_(pa.int32(), pa.string()), lambda i: [(j, f"v{j}") for j in range(i % 3)]),
    ("images", pa.list_(pa.binary()), lambda i: [b"\x00"]),
]
left = {"blob", "hash", "images", "text"}

def as_json(v, of):
    if v is None or isinstance(v, float) and not math.isfinite(v):
        return "null"
    if pa.types.is_map(of):
        members = [(as_json(k, of.key_type), as_json(x, of.item_type)) for k, x in v]
        if pa.types.is_string(of.key_type):
            return "{" + ",".join(k + ":" + x for k, x in members) + "}"
        return "[" + ",".join('{"key":%s,"value":%s}' % m for m in members) + "]"
    if pa.types.is_struct(of):
        return "{" + ",".join(json.dumps(f.name) + ":" + as_json(v[f.name], f.type) for f in of if not pa.types.is_binary(f.type)) + "}"
    if pa.types.is_list(of):
        return "[" + ",".join(as_json(x, of.value_type) for x in v) + "]"
    if pa.types.is_decimal(of):
        return f"{v:.{of.scale}f}"
    if of == pa.uuid():
        return json.dumps(str(uuid.UUID(bytes=v)))
    if pa.types.is_timestamp(of):
        return '"' + trimmed(v.replace(tzinfo=None).isoformat()) + ("Z" if of.tz else "") + '"'
    if isinstance(v, (datetime.date, datetime.time)):
        return '"' + trimmed(v.isoformat()) + '"'
    if isinstance(v, float):
        return repr(int(v)) if v == int(v) else repr(v)
    return json.dumps(v, ensure_ascii=False)

def trimmed(time):
    return time.rstrip("0").rstrip(".") if "." in time else time

types = [t.type if isinstance(t, pa.Field) else t for _, t, _ in columns]
fields = pa.schema([t if isinstance(t, pa.Field) else pa.field(name, t) for name, t, _ in columns])
table = pa.table({name: pa.array([f(i) for i in range(120)], of) for (name, _, f), of in zip(columns, types)}, schema=fields)
with open("fields.jsonl", "w") as out:
    for i in range(120):
        out.write("{" + ",".join(json.dumps(name) + ":" + as_json(f(i), of) for (name, _, f), of in zip(columns, types) if name not in left) + "}\n")
write("fields-v1", table, compression="snappy", data_page_version="1.0")
split = {name: "BYTE_STREAM_SPLIT" for name in ["f16", "f32", "f64", "dec128", "i32"]}
delta = {name: "DELTA_BINARY_PACKED" for name in ["id", "i8", "u32", "u64", "day", "at", "local", "by_id.key_value.key", "deep.list.element.list.element"]}
strings = {"tags.list.element": "DELTA_BYTE_ARRAY", "meta.lang": "DELTA_LENGTH_BYTE_ARRAY", "uuid": "DELTA_BYTE_ARRAY"}
write("fields-v2", table, compression="brotli", data_page_version="2.0", use_dictionary=False, column_encoding=split | delta | strings)
stamps = pa.table({"text": rows, "at": pa.array([instant(i, i * 1001) for i in range(120)], pa.timestamp("us"))})
write("int96", stamps, compression="zstd", use_deprecated_int96_timestamps=True)
