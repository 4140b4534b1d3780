// Package tokenfile reads and writes the token files of other training systems: nanoGPT and llm.c .bin, Megatron .bin and
// .idx, OLMo .npy, datatrove .ds.
//
// A file is a stream of documents, each a slice of token ids. Where a format keeps an end-of-text token (EOT) before or after
// each document, the writer adds it and the reader takes it away: what a caller sees never holds it. Formats without a
// document index are cut at EOT, so that a document without a token does not survive them.
//
// One format is one file; tokenfile.go has what they share. The package imports nothing else of this module but
// internal/fileio.
package tokenfile
