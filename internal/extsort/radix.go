package extsort

import "bytes"

// few is the number of records up to which insertion sort is faster than counting.
const few = 24

// sortRecords sorts the records of size bytes in b, in place, by American flag sort (McIlroy, Bostic and McIlroy
// 1993): it counts the values of a byte, swaps every record into its value's part, and continues with the next byte
// in each part.
func sortRecords(b []byte, size int) {
	flag(b, size, 0, make([]byte, size))
}

func flag(b []byte, size, at int, tmp []byte) {
	for at < size {
		if len(b) <= few*size {
			insertion(b, size, at, tmp)
			return
		}
		var end [256]int
		for i := at; i < len(b); i += size {
			end[b[i]]++
		}
		if end[b[at]]*size == len(b) { // all equal
			at++
			continue
		}
		var next [256]int // position of the next record of each value
		sum := 0
		for v, n := range end {
			next[v] = sum
			sum += n * size
			end[v] = sum
		}
		for v := range end {
			for i := next[v]; i < end[v]; i = next[v] {
				c := b[i+at]
				if int(c) != v {
					j := next[c]
					copy(tmp, b[i:i+size])
					copy(b[i:i+size], b[j:j+size])
					copy(b[j:j+size], tmp)
				}
				next[c] += size
			}
		}
		from := 0
		for _, to := range end {
			if to-from > size {
				flag(b[from:to], size, at+1, tmp)
			}
			from = to
		}
		return
	}
}

func insertion(b []byte, size, at int, tmp []byte) {
	for i := size; i < len(b); i += size {
		j := i
		for j > 0 && bytes.Compare(b[i+at:i+size], b[j-size+at:j]) < 0 {
			j -= size
		}
		if j < i {
			copy(tmp, b[i:i+size])
			copy(b[j+size:i+size], b[j:i])
			copy(b[j:], tmp)
		}
	}
}
