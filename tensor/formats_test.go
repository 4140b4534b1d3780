package tensor

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"
)

// formats is the results of ml_dtypes and numpy on 13·2¹⁶ float32 patterns, and on every code
// (testdata/make_formats.py).
type formats struct {
	Lows  []uint32
	Round map[string][]string // by format: one hash per lower half
	Widen map[string]string
}

func digest(bytes []byte) string {
	h := sha256.Sum256(bytes)
	return hex.EncodeToString(h[:])[:16]
}

// NUM-1, NUM-2, NUM-3: every upper half of float32 with lower halves around all ties, zeros, subnormals, infinities
// and NaN.
func TestRoundingIsThatOfMLDtypes(t *testing.T) {
	want := readFormats(t)
	for name, round := range map[string]func(dst []byte, x float32) []byte{
		"bf16": func(dst []byte, x float32) []byte {
			c := BF16FromFloat32(x)
			if f := c.Float32(); f != f {
				c = 0x7fc0
			}
			return binary.LittleEndian.AppendUint16(dst, uint16(c))
		},
		"f16": func(dst []byte, x float32) []byte {
			c := F16FromFloat32(x)
			if f := c.Float32(); f != f {
				c = 0x7e00
			}
			return binary.LittleEndian.AppendUint16(dst, uint16(c))
		},
		"e4m3": func(dst []byte, x float32) []byte {
			c := E4M3FromFloat32(x)
			if f := c.Float32(); f != f {
				c = 0x7f
			}
			return append(dst, byte(c))
		},
		"e5m2": func(dst []byte, x float32) []byte {
			c := E5M2FromFloat32(x)
			if f := c.Float32(); f != f {
				c = 0x7e
			}
			return append(dst, byte(c))
		},
		"tf32": func(dst []byte, x float32) []byte { return appendBits(dst, RoundTF32(x)) },
	} {
		if len(want.Round[name]) != len(want.Lows) {
			t.Fatalf("%s: %d hashes for %d lower halves", name, len(want.Round[name]), len(want.Lows))
		}
		for i, low := range want.Lows {
			var codes []byte
			for upper := range uint32(1 << 16) {
				codes = round(codes, math.Float32frombits(upper<<16|low))
			}
			if got := digest(codes); got != want.Round[name][i] {
				t.Errorf("%s: the patterns that end in %#04x round to codes of hash %s, want %s",
					name, low, got, want.Round[name][i])
			}
		}
	}
}

func TestEveryCodeWidensAsInMLDtypes(t *testing.T) {
	want := readFormats(t)
	for _, c := range []struct {
		name  string
		codes int
		value func(code int) float32
	}{
		{"bf16", 1 << 16, func(c int) float32 { return BFloat16(c).Float32() }},
		{"f16", 1 << 16, func(c int) float32 { return Float16(c).Float32() }},
		{"e4m3", 1 << 8, func(c int) float32 { return E4M3(c).Float32() }},
		{"e5m2", 1 << 8, func(c int) float32 { return E5M2(c).Float32() }},
	} {
		var bits []byte
		for code := range c.codes {
			bits = appendBits(bits, c.value(code))
		}
		if got := digest(bits); got != want.Widen[c.name] {
			t.Errorf("%s: the %d codes widen to bits of hash %s, want %s", c.name, c.codes, got, want.Widen[c.name])
		}
	}
}

func readFormats(t *testing.T) (f formats) {
	t.Helper()
	data, err := os.ReadFile("testdata/formats.json")
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil || len(f.Lows) == 0 {
		t.Fatalf("testdata/formats.json: %d lower halves, %v", len(f.Lows), err)
	}
	return f
}

func appendBits(dst []byte, x float32) []byte {
	bits := math.Float32bits(x)
	if x != x {
		bits = 0x7fc00000
	}
	return binary.LittleEndian.AppendUint32(dst, bits)
}

// NUM-6: the mean of many roundings is the number, within four standard deviations; what BF16 holds stays.
func TestStochasticRoundingHasTheMeanOfTheNumber(t *testing.T) {
	r := NewRNG(3, PurposeRound, 0)
	const n = 20000
	for k, x := range []float32{1.003, -1.003, 1e-3, 3e38, 1e-40, 0x1p-133, 1, -0.5, 0} {
		sum, up := 0.0, 0
		for i := range uint64(n) {
			v := BF16Stochastic(x, r.Uint32(uint64(k)*n+i)).Float32()
			sum += float64(v)
			if math.Abs(float64(v)) > math.Abs(float64(x)) {
				up++
			}
		}
		below := BFloat16(math.Float32bits(x) >> 16)
		low := float64(below.Float32())
		place := math.Abs(float64((below + 1).Float32()) - low)
		p := math.Abs(float64(x)-low) / place
		if sigma := place * math.Sqrt(p*(1-p)/n); math.Abs(sum/n-float64(x)) > 4*sigma {
			t.Errorf("%v has the mean %v, %.1f standard deviations away", x, sum/n, math.Abs(sum/n-float64(x))/sigma)
		}
		if x == 1.003 && math.Abs(float64(up)/n-0.384) > 0.015 {
			t.Errorf("%v is rounded up in %.3f of the draws, want 0.384", x, float64(up)/n)
		}
	}
}
