package fasttext

// matrix has rows of cols numbers, stored as float32 or as product codes.
type matrix struct {
	rows, cols int
	dense      []float32 // nil if quantised

	codes     []byte // [rows, len(parts)]
	parts     []part
	normCodes []byte    // [rows]; nil if norms are not coded separately
	norms     []float32 // the 256 norms
}

// part is a range of columns of a quantised matrix, with the 256 centroids that its codes refer to.
type part struct {
	column, width int
	centroids     []float32 // [256, width]
}

const centroids = 256

// row returns a row of a matrix that is not quantised.
func (m *matrix) row(i int) []float32 { return m.dense[i*m.cols:][:m.cols] }

// sum adds rows to acc, in order.
func (m *matrix) sum(acc []float32, rows []int32) {
	if m.codes == nil {
		addRows(acc, m.dense, rows)
		return
	}
	for _, r := range rows {
		codes := m.codes[int(r)*len(m.parts):][:len(m.parts)]
		norm := float32(1)
		if m.normCodes != nil {
			norm = m.norms[m.normCodes[r]]
		}
		for i := range m.parts {
			p := &m.parts[i]
			c := p.centroids[int(codes[i])*p.width:][:p.width]
			a := acc[p.column:][:len(c)]
			for j := range c {
				a[j] += float32(norm * c[j])
			}
		}
	}
}

// product computes the product of each row with x: dst[i] = Σ row[i]·x. Each sum runs in the order of the columns.
func (m *matrix) product(dst, x []float32) {
	if m.codes != nil {
		for i := range dst {
			dst[i] = m.dot(x, i)
		}
		return
	}
	i, n := 0, len(x)
	for ; i+4 <= len(dst); i += 4 { // four independent sums, so that additions do not wait for each other
		a, b := m.dense[i*n:][:n], m.dense[(i+1)*n:][:n]
		c, d := m.dense[(i+2)*n:][:n], m.dense[(i+3)*n:][:n]
		var s, t, u, v float32
		for j, y := range x {
			s += float32(a[j] * y)
			t += float32(b[j] * y)
			u += float32(c[j] * y)
			v += float32(d[j] * y)
		}
		dst[i], dst[i+1], dst[i+2], dst[i+3] = s, t, u, v
	}
	for ; i < len(dst); i++ {
		dst[i] = m.dot(x, i)
	}
}

// dot returns the product of a row with x.
func (m *matrix) dot(x []float32, row int) float32 {
	sum := float32(0)
	if m.codes == nil {
		for j, w := range m.dense[row*m.cols:][:len(x)] {
			sum += float32(w * x[j])
		}
		return sum
	}
	codes := m.codes[row*len(m.parts):][:len(m.parts)]
	for i, p := range m.parts {
		for j, c := range p.centroids[int(codes[i])*p.width:][:p.width] {
			sum += float32(c * x[p.column+j])
		}
	}
	if m.normCodes != nil {
		sum *= m.norms[m.normCodes[row]]
	}
	return sum
}
