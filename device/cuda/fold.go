//go:build cuda && linux

package cuda

import (
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// foldTerms is the number of terms that one launch adds.
const foldTerms = 16

// Fold implements device.Device. If there are more than 16 terms, scratch holds the sum of earlier terms.
func (d *Device) Fold(dst *tensor.Tensor, terms []*tensor.Tensor, add bool) {
	checkFold(dst, terms)
	var before driver.Pointer
	if add {
		before = driver.Pointer(dst.Pointer())
	}
	for ; len(terms) > foldTerms; terms = terms[foldTerms:] {
		sum := d.scratch(dst.Bytes())
		d.fold(dst, sum, before, terms[:foldTerms])
		before = sum
	}
	d.fold(dst, driver.Pointer(dst.Pointer()), before, terms)
}

// fold writes to sum the sum of up to foldTerms terms, all of dst's shape and type, and of before, unless it is null.
func (d *Device) fold(dst *tensor.Tensor, sum, before driver.Pointer, terms []*tensor.Tensor) {
	c := d.begin("fold", "fold", dst.DType(), stored("S", terms[0]))
	c.pointer(sum)
	c.pointer(before)
	c.int(dst.Len())
	c.int(len(terms))
	for i := range foldTerms {
		c.tensor(terms[min(i, len(terms)-1)])
	}
	c.perPack(dst.Len())
}

func checkFold(dst *tensor.Tensor, terms []*tensor.Tensor) {
	const op = "Fold"
	dtype(op, "dst", dst, arithmetic(dst))
	if len(terms) == 0 {
		panic("cuda: Fold: no terms")
	}
	stored := terms[0].DType()
	if stored != tensor.BF16 {
		stored = dst.DType()
	}
	for _, t := range terms {
		length(op, "a term", t, dst.Len())
		dtype(op, "a term", t, stored)
	}
}
