// Package fasttext classifies text by the average of the vectors of its words, their character n-grams and its word n-grams
// (Joulin et al. 2016, "Bag of Tricks for Efficient Text Classification", arXiv 1607.01759; FastText.zip, arXiv 1612.03651).
// It reads and writes the .bin files of fastText's supervised models and reads and writes their quantised .ftz, predicts what
// the original predicts, and trains models that the original can use.
//
//	hidden  h = 1/n · Σ W[row]            rows of the words, their n-grams of characters, and the n-grams of words: n of them
//	scores  softmax(V·h); or σ(V·h), one for each label (one-vs-all, negative sampling); or the product of σ along the path of
//	        a label through a Huffman tree (hierarchical softmax)
//
// Memory: rows · dim · 4 bytes (quantised: rows · dim/2 bytes), and at most 5 MiB a Predictor.
//
// Use it to tell languages, kinds of text and good from bad examples apart at hundreds of megabytes a second; not where order
// over more than a few words matters.
//
// Start reading at model.go and predict.go; train.go says how training differs from the original's. The package imports nothing
// of this module but internal/fileio.
package fasttext
