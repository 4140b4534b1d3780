// Package corpus reads documents: plain text, source trees, JSON lines and WARC, plain or compressed with gzip or
// zstd, and parquet. It turns a list of files and directories into one stream of documents. Order and content depend
// only on the bytes on disk, and everything that is left out is counted.
//
// What becomes a document:
//   - A plain-text file of at most Options.MaxDocument bytes (1 MiB) is one document. A longer file is a collection:
//     it is cut at blank lines, else at line ends, into pieces of at most Options.Piece bytes (64 KiB). Memory stays
//     bounded, and a single large file still has a held-out part. A piece always begins at the first line end after
//     each 64th multiple of Options.Piece, so that splits can begin there.
//   - A line of a .jsonl or .ndjson file is one document: the string under the key Options.TextField ("text"). A
//     compressed .json file whose first line is a whole object is read as JSON lines too; C4 and Dolma are published
//     that way.
//   - A row of a .parquet file is one document: the string in the column Options.TextField, where "a.b" is the column
//     b in the structure a. Rows whose text is null are skipped.
//   - A record of a .warc, .wet or .wat file is one document if it is text/plain: a conversion (as in WET files), a
//     resource, or an HTTP response with status 200. The document of an HTML record is its main text (package
//     extract). Records about the crawl itself are ignored.
//   - The endings .gz, .zst and .zstd are removed from a name to find the format of the content.
//   - A directory is walked in sorted order. Hidden files and directories are skipped, and so are data sets and runs.
//     Of what curation or deduplication wrote only the documents are read. Symbolic links are followed, but no file or
//     directory is read twice, so a loop of links ends.
//
// With Options.Fields a document keeps its other fields: the other members of a JSON object, byte for byte; the other
// columns of parquet as JSON; the URL, date, record id, content type and HTTP status of WARC. Line says how they are
// written.
//
// Bytes stay as they are, line ends included, except that a UTF-8 byte order mark at the start of a file is dropped. A
// document that is not wholly valid UTF-8 passes unchanged, because the tokenizer works on bytes, and is counted in
// Report.InvalidUTF8. A document with a NUL byte, or with more than a tenth of its bytes outside UTF-8, is rejected.
//
// Rejected files, pieces and lines are counted by reason in Report and passed to Options.OnReject with their place.
// Report.Lost counts the loss: documents and bytes that a user would miss, and files that could not be read to the
// end. MaxLoss decides whether a command may succeed all the same. Reading ends with an error in three cases: a named
// path cannot be read, the disk fails in the middle of a file, or the input has no document.
//
// In a damaged compressed stream everything after the damage is lost, and a text file that is one document is lost
// whole. gzip and zstd detect a changed byte only at the checksum after it, so documents of JSON lines delivered
// before that may be wrong; the report names the file.
//
// Memory is bounded by Options.MaxDocument + Options.MaxLine + the window of the decompressor (at most 128 MiB for
// zstd); for parquet by two pages (of at most 256 MiB), with fields by 384 MiB more; for HTML by ten times
// Options.MaxLine. Nothing that the input claims about sizes changes these bounds. A stream that expands more than
// Options.MaxRatio-fold is abandoned.
//
// Reader.Splits cuts the input into parts that can be read independently, at once or on many machines. Together they
// give the same documents.
//
// Start reading at reader.go; walk.go finds the files, compress.go opens them, text.go, jsonl.go, warc.go and
// parquet.go cut them into documents, split.go and frames.go into splits; fields.go and write.go write them; report.go
// and loss.go count. Of this module the package imports only extract and internal packages.
package corpus
