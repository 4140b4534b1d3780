// Package corpus reads documents: plain text, source trees, JSON lines, WARC, all of these compressed with gzip or zstd,
// and parquet. It turns a list of files and directories into one stream of documents whose order and content depend on the
// bytes on disk alone, and it accounts for everything it leaves out.
//
// What becomes a document:
//   - A plain-text file of at most Options.MaxDocument bytes (1 MiB) is one document. A longer file is a collection
//     rather than a document; it is cut at blank lines, else at line ends, into pieces of at most Options.Piece bytes
//     (64 KiB), so that nothing is lost, memory stays bounded and a single large file still has a held-out part. At the
//     first line end behind every 64th multiple of Options.Piece a piece begins in any case, so that splits can begin there.
//   - A line of a .jsonl or .ndjson file is one document: the string under Options.TextField ("text") of the object on
//     that line. A compressed .json file whose first line is a whole object is read as JSON lines too, which is how C4
//     and Dolma are published.
//   - A row of a .parquet file is one document: the string in the column Options.TextField, where "a.b" is the column b in
//     the structure a. Nulls are rejected with their rows.
//   - A record of a .warc, .wet or .wat file that is text/plain is one document: a conversion (what WET files hold), a
//     resource, or an HTTP response with status 200. Of one that is HTML the document is the main text (package extract).
//     Records about the crawl itself are passed over.
//   - .gz, .zst and .zstd are stripped from the name to find out what is inside.
//   - A directory is walked in sorted order. Hidden files and directories are left out; symbolic links are followed,
//     but no file or directory is read twice, so that a loop of links ends.
//
// What happens to bytes: a UTF-8 byte order mark at the start of a file is dropped, and nothing else is changed. Line
// ends stay as they are. A document that is not wholly valid UTF-8 passes unchanged, because the tokenizer works on
// bytes, and is counted in Report.InvalidUTF8. A document with a NUL byte, or in which more than a tenth of the bytes
// is not UTF-8, is binary (or text in another encoding) and is rejected.
//
// What is rejected (a file, a piece, a line) is counted by reason in Report and handed to Options.OnReject with its
// place. Three things are errors instead, because going on would hide them: a path that was named but cannot be read,
// a disk that fails in the middle of a file, and an input from which not one document came.
//
// A damaged compressed stream loses what follows the damage, and a text file that is short enough to be one document
// is lost whole. gzip and zstd tell of a changed byte only when they reach the checksum behind it: documents of JSON
// lines delivered before that may be wrong, and the report names the file.
//
// Memory is bounded by Options.MaxDocument + Options.MaxLine + the window of the decompressor (128 MiB for zstd at
// most), for parquet by two of its largest page (of 256 MiB at most), for HTML by ten times Options.MaxLine, whatever the
// input claims about itself. A stream
// that expands more than Options.MaxRatio-fold is given up.
//
// Reader.Splits cuts the input into parts that are read by themselves, at once or on many machines; together they give the
// same documents.
//
// Start reading at reader.go; walk.go finds the files, compress.go opens them, text.go, jsonl.go, warc.go and parquet.go cut
// them into documents, split.go and frames.go into splits. The package imports nothing else of this module but extract,
// internal/parquet and internal/fileio.
package corpus
