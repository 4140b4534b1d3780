package nn

import "math"

// llama3 is the scaling of Llama 3.1 (Grattafiori et al. 2024, arXiv 2407.21783). A pair that turns r = L0·f/2π times
// within the original context is unchanged if r > High and slowed by the whole factor if r < Low; between them its
// frequency is interpolated linearly in r. Low = 1 and High = 4. It needs training with the scaling; for a model
// without such training prefer yarn.
func (s RoPEScaling) llama3(f []float64, original int) {
	for i := range f {
		r := float64(original) * f[i] / (2 * math.Pi)
		stays := min(max((r-s.Low)/(s.High-s.Low), 0), 1)
		f[i] = f[i]/s.Factor*(1-stays) + f[i]*stays
	}
}
