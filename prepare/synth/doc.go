// Package synth makes the texts of studies: small worlds with known rules, so that a study can count what a model has
// learnt. One file holds one kind of text. Start with Text (synth.go). The package may import the same packages as
// prepare.
package synth
