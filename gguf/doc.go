// Package gguf reads and writes the GGUF format, version 3: metadata, descriptions of tensors, and their data, which
// llama.cpp loads without conversion.
//
// The reader is strict, because files may come from untrusted sources. It accepts what the format's reference
// implementation accepts, and limits its allocations by the bytes that really exist. It reads metadata and
// descriptions; callers read the part of a tensor that they need. The writer streams: it holds a few thousand values
// of a tensor at a time, and a file gets its name only when it is complete.
//
// Start at Write in writer.go and Open in reader.go, which parses by header.go. type.go has the types of tensors,
// encode.go turns float32 values into their bytes and back. Package interop defines the metadata of a model. Of this
// module the package imports only internal/fileio and internal/floats.
package gguf
