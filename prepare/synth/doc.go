// Package synth makes the texts of studies: small worlds of which everything is known, so that what a model has learnt
// can be counted. One file holds one kind of text. Start with Text (synth.go). The package may import what prepare may.
package synth
