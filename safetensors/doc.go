// Package safetensors reads and writes the safetensors format: a length, a JSON header, and raw tensor bytes.
//
// The reader is strict, because files may come from untrusted sources. It accepts exactly what the format's reference
// implementation accepts, and limits its allocations by the bytes that really exist. It never loads a whole file:
// callers read the part of a tensor that they need into their own buffer. The writer is canonical: the same tensors
// give the same bytes as the reference implementation, and a file gets its name only when it is complete.
//
// Of this module it imports only internal/fileio and internal/floats. Start reading at Open in reader.go, then
// parseHeader in header.go; the writer starts at Layout in writer.go. sharded.go handles directories with an index of
// shards, float.go converts between float32 and the stored dtypes.
package safetensors
