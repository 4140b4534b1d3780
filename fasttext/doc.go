// Package fasttext classifies text by the average of the vectors of its words, their character n-grams and its word
// n-grams (Joulin et al. 2016, "Bag of Tricks for Efficient Text Classification", arXiv 1607.01759; FastText.zip,
// arXiv 1612.03651). It reads and writes the files of fastText's supervised models (.bin, and .ftz for quantised
// ones), makes the same predictions as fastText, and trains models that fastText can load.
//
//	hidden  h = 1/n · Σ W[row]            over the n rows of the words, their character n-grams and the word n-grams
//	scores  softmax(V·h); or σ(V·h), one for each label (one-vs-all, negative sampling); or the product of σ along the path of
//	        a label through a Huffman tree (hierarchical softmax)
//
// Memory: rows · dim · 4 bytes (quantised: rows · dim/2 bytes), and at most 5 MiB per Predictor.
//
// Use it to tell languages, kinds of text, or good from bad examples at hundreds of megabytes per second. Do not use
// it where the order of more than a few words matters.
//
// Start reading at model.go and predict.go; train.go says how training differs from the original. The package imports
// only packages under internal from this module.
package fasttext
