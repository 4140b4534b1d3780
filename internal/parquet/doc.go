// Package parquet reads one column of text from a parquet file, page by page, in memory that the file cannot choose.
// It imports nothing of this module. It exists because a general reader allocates what a footer or a page header claims,
// and that much memory is not to be had back: here every size is checked against the bytes that are there, first.
//
// Read are BYTE_ARRAY columns, required or optional, at any depth but inside lists and maps; data pages of both versions;
// the encodings PLAIN, RLE_DICTIONARY (and its old name), DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY; pages that are
// plain or under snappy, gzip or zstd; page checksums, where they are written. The format is described at
// https://github.com/apache/parquet-format.
//
// Start reading at file.go; page.go takes pages apart, values.go decodes them, thrift.go reads the metadata.
package parquet
