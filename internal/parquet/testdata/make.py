"""Writes the golden files of this directory with pyarrow. Run it here: python make.py

Each file has the same 120 rows; TestGoldenFiles computes them again.
"""
import itertools
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
write("lz4", full, compression="lz4")
write("list", pa.table({"text": [[v] for v in rows]}), compression="zstd")
with pq.ParquetWriter("empty-group-null.parquet", some.schema, compression="zstd", write_page_checksum=True, store_schema=False) as w:
    for at, n in [(0, 50), (50, 0), (50, 50), (100, 20)]:  # a table of no rows becomes a row group, too
        w.write_table(some.slice(at, n))
