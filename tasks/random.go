package tasks

import (
	"math"
	"math/bits"
)

// python is random.Random of Python: a Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded as Python seeds
// it by a whole number.
type python struct {
	state [624]uint32
	next  int
}

func newPython(seed uint32) *python {
	p := &python{next: len(python{}.state)}
	s := &p.state
	s[0] = 19650218
	for i := 1; i < len(s); i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i := 1
	advance := func() {
		if i++; i == len(s) {
			s[0], i = s[len(s)-1], 1
		}
	}
	for range s { // the seed is a key of one word
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1664525) + seed
		advance()
	}
	for range len(s) - 1 {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1566083941) - uint32(i)
		advance()
	}
	s[0] = 1 << 31
	return p
}

func (p *python) uint32() uint32 {
	s := &p.state
	if p.next == len(s) {
		for i := range s {
			y := s[i]&(1<<31) | s[(i+1)%len(s)]&(1<<31-1)
			s[i] = s[(i+397)%len(s)] ^ y>>1 ^ y&1*0x9908b0df
		}
		p.next = 0
	}
	y := s[p.next]
	p.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below is randrange(n).
func (p *python) below(n int) int {
	shift := 32 - bits.Len32(uint32(n))
	for {
		if r := int(p.uint32() >> shift); r < n {
			return r
		}
	}
}

// sample is sample(range(n), k).
func (p *python) sample(n, k int) []int {
	result := make([]int, k)
	size := 21
	if k > 5 {
		size += int(math.Pow(4, math.Ceil(math.Log(float64(k*3))/math.Log(4))))
	}
	if n <= size {
		pool := make([]int, n)
		for i := range pool {
			pool[i] = i
		}
		for i := range result {
			j := p.below(n - i)
			result[i], pool[j] = pool[j], pool[n-i-1]
		}
		return result
	}
	taken := map[int]bool{}
	for i := range result {
		j := p.below(n)
		for taken[j] {
			j = p.below(n)
		}
		taken[j], result[i] = true, j
	}
	return result
}
