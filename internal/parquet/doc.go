// Package parquet reads a column of text from a parquet file, and the other columns beside it as JSON, page by page,
// in memory that the file cannot choose. It imports nothing of this module. It exists because a general reader
// allocates what a footer or a page header claims; here every size is first checked against the bytes that are there.
//
// The text is a BYTE_ARRAY column, required or optional, at any depth but not inside lists and maps. The other columns
// may be of any type that has a form in JSON, in structures, lists and maps; Left names those that have none, such as
// images. Supported: data pages of both versions; the encodings PLAIN, RLE_DICTIONARY (and its old name), RLE of
// booleans, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT; pages plain or under
// snappy, gzip, zstd, Brotli, LZ4 and LZ4_RAW; page checksums, where they are written. Not supported: LZO, encryption.
// The format is described at https://github.com/apache/parquet-format.
//
// Start reading at file.go; page.go takes pages apart, codec.go decompresses them, values.go decodes them; schema.go
// and thrift.go read the metadata; tree.go, rows.go and render.go make JSON of the other columns.
package parquet
