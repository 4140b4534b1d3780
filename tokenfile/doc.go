// Package tokenfile reads and writes the token files of other training systems: nanoGPT and llm.c .bin, Megatron .bin
// and .idx, OLMo .npy, datatrove .ds.
//
// A file is a stream of documents, each a slice of token ids. If a format puts an end-of-text token (EOT) before or
// after each document, the writer adds it and the reader removes it: callers never see it. Formats without a document
// index are split at EOT, so empty documents are lost.
//
// Each format has its own file; tokenfile.go has the shared code. Of this module the package imports only
// internal/fileio.
package tokenfile
