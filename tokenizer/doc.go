// Package tokenizer turns text into token ids and back: byte-level BPE (Sennrich et al. 2016, arXiv 1508.07909; byte
// alphabet of GPT-2).
//
// A [Tokenizer] is immutable and safe to share. It comes from [Train], or from a file ([Open]): a Hugging Face
// tokenizer.json ([Load], [Read]), a tiktoken rank file ([ReadTiktoken]), or GPT-2's vocab.json and merges.txt
// ([ReadGPT2]). Each goroutine that encodes takes its own [Encoder], which holds the cache of pretokens that makes
// encoding fast.
//
// The way of a text (encode.go): it is composed if a file asks for that (internal/nfc), a splitter cuts it into pretokens
// (pattern.go, split.go, split_o200k.go, block.go; regexp.go for patterns that have no hand-written splitter), a cache
// answers for those seen before (cache.go), and merges are run for the rest (merge.go, ranks.go). Training (train.go)
// counts pretokens (count.go) and merges the most frequent pair again and again (learn.go, pairs.go), within a memory
// budget if one is given (budget.go, spill.go); cut.go makes smaller vocabularies of a large one. Files: files.go; hf.go,
// hfmerges.go, hfparts.go and hfwrite.go for tokenizer.json, tiktoken.go for ranks; endoftext.go for the token
// that ends a text. How well a vocabulary fits a text: evaluate.go.
//
// Every byte string can be encoded, valid UTF-8 or not, and decoding gives back the same bytes, or their normalization.
//
// Letters, numbers and spaces are those of the Unicode version of the Go release (package unicode); characters
// assigned since then count as "other" here, while libraries with newer tables may call them letters.
//
// Start reading at tokenizer.go. The package imports nothing of this module but internal/fileio and internal/nfc.
package tokenizer
