package tfevents

import (
	"math"
	"slices"
)

// A Value is one tagged value of a summary. Tags with slashes are grouped by the part before the first.
type Value []byte

// Scalar returns a number. TensorBoard draws NaN as a triangle.
func Scalar(tag string, x float64) Value {
	v := tagged(tag)
	v.float(2, float32(x))
	return Value(v)
}

// Text returns a text, which TensorBoard shows as Markdown.
func Text(tag, text string) Value {
	const stringType, tensorClass = 7, 2
	var dim, shape, tensor message
	dim.int(1, 1)
	shape.bytes(2, dim) // [1]
	tensor.int(1, stringType)
	tensor.bytes(2, shape)
	tensor.string(8, text)

	var plugin, metadata message
	plugin.string(1, "text")
	metadata.bytes(1, plugin)
	metadata.int(4, tensorClass)

	v := tagged(tag)
	v.bytes(8, tensor)
	v.bytes(9, metadata)
	return Value(v)
}

// buckets is the number of intervals of a histogram.
const buckets = 30

// Histogram returns the distribution of the finite numbers of a list, in equal intervals between the least and the
// greatest. Without a finite number it is empty.
func Histogram(tag string, list []float64) Value {
	list = slices.DeleteFunc(slices.Clone(list), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	var h message
	if len(list) > 0 {
		h = histogram(list)
	}
	v := tagged(tag)
	v.bytes(5, h)
	return Value(v)
}

func histogram(list []float64) (h message) {
	low, high := slices.Min(list), slices.Max(list)
	limits, counts := []float64{high}, []float64{float64(len(list))}
	if width := high/buckets - low/buckets; width > 0 { // equal numbers share one interval
		limits, counts = make([]float64, buckets), make([]float64, buckets)
		for i := range limits {
			limits[i] = low + width*float64(i+1)
		}
		limits[buckets-1] = high
		for _, x := range list {
			counts[min(int(x/width-low/width), buckets-1)]++
		}
	}
	sum, squares := 0.0, 0.0
	for _, x := range list {
		sum, squares = sum+x, squares+x*x
	}
	h.double(1, low)
	h.double(2, high)
	h.double(3, float64(len(list)))
	h.double(4, sum)
	h.double(5, squares)
	h.doubles(6, limits)
	h.doubles(7, counts)
	return h
}

func tagged(tag string) (v message) {
	v.string(1, tag)
	return v
}
