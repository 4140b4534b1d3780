// Package tokenizer turns text into token ids and back: byte-level BPE (Sennrich et al. 2016, arXiv 1508.07909; byte
// alphabet of GPT-2).
//
// A [Tokenizer] is immutable and safe to share. It comes from [Train], or from a file ([Open]): a Hugging Face
// tokenizer.json ([Load], [Read]), a tiktoken rank file ([ReadTiktoken]), or GPT-2's vocab.json and merges.txt
// ([ReadGPT2]). Each goroutine that encodes needs its own [Encoder], which holds the cache of pretokens that makes
// encoding fast.
//
// Encoding a text (encode.go) takes these steps. The text is normalized if the tokenizer's file asks for that
// (internal/nfc). A splitter cuts it into pretokens (pattern.go, split.go, split_o200k.go, block.go; regexp.go for
// patterns without a hand-written splitter). A cache returns the tokens of known pretokens (cache.go), and merges
// produce the rest (merge.go, ranks.go). Training (train.go) counts pretokens (count.go) and repeatedly merges the
// most frequent pair (learn.go, pairs.go), within a memory budget if one is given (budget.go, spill.go). cut.go
// derives smaller vocabularies from a large one. Files: files.go; hf.go, hfmerges.go, hfparts.go and hfwrite.go for
// tokenizer.json, tiktoken.go for ranks. evaluate.go measures how well a vocabulary fits a text.
//
// Every byte string can be encoded, valid UTF-8 or not, and decoding returns the same bytes, or their normalization.
//
// Letters, numbers and spaces are those of the Unicode version of the Go release (package unicode). Characters
// assigned later count as "other" here, while libraries with newer tables may call them letters.
//
// Start reading at tokenizer.go. Of this module the package imports only internal packages.
package tokenizer
