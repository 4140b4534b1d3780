// Package dataset stores tokenised text on disk and serves it to training. Build writes shards of tokens, Open reads
// them, and a Loader cuts them into samples whose order is computed instead of buffered. It imports
// neither the corpus reader nor the tokenizer, only internal/fileio: Build takes plain bytes and an encode function.
//
// # A dataset on disk
//
//	DIR/dataset.json         the manifest: the contents of the shards; written last: without it, DIR is no dataset
//	DIR/tokenizer.json       the tokenizer, if Build was given it
//	DIR/tokenizer_config.json  which token ends a text, for readers of tokenizer.json
//	DIR/train/00000.tokens   shards of the training split
//	DIR/val/00000.tokens     shards of the validation split (absent if there is none)
//	DIR/scores/NAME.f32      a number for each document of the training split, if it was scored
//
// # The token stream
//
// Each document is one end-of-text token (EOT) followed by the tokens of its text; EOT never occurs inside a
// document. The token thus ends one document and begins the next: a model learns to emit it at the end of a text, and
// a prompt that begins with it looks like the start of a training document. A split is the concatenation of its
// documents, across shards, in the order of the input, but for some that wait at the start until it is known that each
// split has a document.
//
// # A shard, byte by byte
//
// All numbers are little endian.
//
//	offset  size  field
//	     0     8  magic: 93 'A' 'N' 'N' 'E' 'A' 'L' 0A
//	     8     4  version, 1; 2 if documents have prompts
//	    12     4  bytes per token: 2 (u16) or 4 (u32)
//	    16     8  vocabulary size; every token id is below it
//	    24     8  EOT id
//	    32    32  SHA-256 of the tokenizer
//	    64     8  number of tokens, EOT included (n)
//	    72     8  number of documents (d)
//	    80     8  bytes of text in those documents
//	    88     8  offset of the payload, 4096
//	    96     8  offset of the document index: the end of the payload, rounded up to 64
//	   104     8  offset of the checksum table: the end of the document index
//	   112     8  size of the file
//	   120     4  bytes per checksummed block, 1048576
//	   124     4  CRC-32C of the checksum table
//	   128     8  number of tokens in prompts; 0 in version 1
//	   136  3956  zero
//	  4092     4  CRC-32C of bytes 0–4091
//	  4096        payload: n tokens, then zeros up to a multiple of 64
//	              document index: d × u64, the token position at which each document ends (exclusive); in version 2
//	              d × two u64, this position and the number of tokens, after EOT, that are the document's prompt
//	              checksum table: one u32, the CRC-32C of each block of [4096, offset of the table); the last is short
//
// All other fields follow from the counts, so the reader computes them and rejects a file with other values before it
// allocates anything. Shards are written under a temporary name and renamed when complete.
//
// Shards are read with ReadAt, not mmap. A file that shrinks during training is then an error that names it instead
// of a SIGBUS, and one system call per sample costs nothing compared with a training step. Each block is checked
// against its checksum on first access, each token against the vocabulary on every read, and Dataset.Verify checks
// everything at once.
//
// # Samples
//
// A Loader for context T cuts the stream into windows of T+1 tokens with stride T: token i of the window is the
// input, token i+1 its target. Training visits the windows in the order of a keyed permutation, a new one for each
// epoch. The content of sample k is therefore a pure function of (dataset, T, seed, k): any k can be read at any
// time, in any batch size, by any number of ranks, and resuming needs only the State, about 150 bytes. Loader.Arrange
// changes the order within an epoch by scores, with the same guarantees. Mixed interleaves the samples of several
// datasets by weights, each in the order of its Loader. Validation visits the windows in order, once each, up to the
// last token.
//
// Start reading at dataset.go, then loader.go, order.go and mixed.go; shard.go and header.go read the format,
// writer.go and build.go write it.
package dataset
