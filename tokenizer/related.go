package tokenizer

import "bytes"

// Related reports whether one of two tokenizers is the other with more merges or with other special tokens: both
// split text alike and start with the same merges, so they produce the same tokens except for those that only one of
// them has.
func Related(a, b *Tokenizer) bool {
	if a.pattern.regex != b.pattern.regex || a.nfc != b.nfc || a.ignoreMerges != b.ignoreMerges {
		return false
	}
	for i := range min(len(a.merges), len(b.merges)) {
		x, y := a.merges[i], b.merges[i]
		if !bytes.Equal(a.Token(x.left), b.Token(y.left)) || !bytes.Equal(a.Token(x.right), b.Token(y.right)) {
			return false
		}
	}
	return true
}
