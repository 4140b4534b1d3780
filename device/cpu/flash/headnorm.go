package flash

import "math"

// headEps is added to the mean square of an output.
const headEps = 1e-6

// normHeads divides n outputs o [n, e] of a head of size elements by the root r of their mean square, and writes r to
// norm unless that is nil. f is scratch memory of n numbers.
func (l *linear[T]) normHeads(o, f, norm []T, n, e, size int) {
	l.dot(f, o, o, e, n, e)
	for i, square := range f[:n] {
		r := math.Sqrt(float64(square)/float64(size) + headEps)
		if f[i] = T(1 / r); norm != nil {
			norm[i] = T(r)
		}
	}
	l.scaleRows(o, e, n, e, f)
}

// normHeadsGrad turns the gradients do of normalised outputs o into those before normHeads.
func (l *linear[T]) normHeadsGrad(do, o, f, norm []T, n, e, size int) {
	l.dot(f, do, o, e, n, e)
	for i, r := range norm[:n] {
		row := do[i*e : (i+1)*e]
		l.vec.Axpy(row, o[i*e:], -f[i]/T(size))
		l.vec.Scale(row, row, 1/r)
	}
}
