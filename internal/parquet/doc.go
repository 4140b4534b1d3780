// Package parquet reads a column of text from a parquet file, and the other columns as JSON, page by page. A file
// cannot make it use more memory than a limit: a general reader allocates what a footer or a page header claims, but
// here every size is first checked against the bytes that exist. It imports nothing of this module.
//
// The text is a BYTE_ARRAY column, required or optional, at any depth but not inside lists and maps. The other columns
// may have any type that JSON can hold, in structures, lists and maps; Left names the columns with other types, such
// as images. Supported: data pages of both versions; the encodings PLAIN, RLE_DICTIONARY (and its old name), RLE of
// booleans, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT; pages uncompressed
// or with snappy, gzip, zstd, Brotli, LZ4 and LZ4_RAW; page checksums, if the file has them. Not supported: LZO,
// encryption. The format is described at https://github.com/apache/parquet-format.
//
// Start reading at file.go; page.go splits pages, codec.go decompresses them, values.go decodes them; schema.go and
// thrift.go read the metadata; tree.go, rows.go and render.go turn the other columns into JSON.
package parquet
