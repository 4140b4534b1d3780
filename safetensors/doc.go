// Package safetensors reads and writes the safetensors format: a length, a JSON header, and raw tensor bytes.
//
// The reader is strict, because files come from strangers: it accepts exactly what the format's reference
// implementation accepts, and caps what it allocates by the bytes that are really there. It never loads a file whole;
// callers read the part of a tensor they need into their own buffer. The writer is canonical: the same tensors give the
// same bytes as the reference implementation, and a file appears under its name only when it is complete.
//
// It imports nothing else of this module but internal/fileio. Start reading at Open in reader.go, then parseHeader in header.go; the writer
// starts at Layout in writer.go. Directories with an index of shards are in sharded.go, conversions between float32 and
// the stored dtypes in float.go.
package safetensors
