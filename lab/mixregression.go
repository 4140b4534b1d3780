package lab

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// The regression of RegMix: from the weights w of k sources to the loss of a model trained on them. Two families of features
// compete, standardised, each by ridge regression with a free intercept:
//
//	linear:         w₁ … w_k
//	log-quadratic:  ln wᵢ and ln wᵢ · ln wⱼ, for losses fall like powers of the weight and rise again where others go without
//
// Family and penalty are those with the least leave-one-out error, which ridge regression has in closed form (PRESS):
// (yᵢ − ŷᵢ)/(1 − hᵢᵢ), h the diagonal of X(XᵀX + λI)⁻¹Xᵀ + 1/n.

// least is the weight below which a source counts as left out of a mixture: it would be a few rows of a proxy's run.
const least = 1e-3

// families of features, by what the report calls them.
var families = []struct {
	name     string
	features func(w []float64) []float64
}{
	{"linear", func(w []float64) []float64 { return w }},
	{"log-quadratic", func(w []float64) []float64 {
		var f []float64
		for i := range w {
			f = append(f, math.Log(max(w[i], least)))
		}
		for i := range w {
			for j := range i + 1 {
				f = append(f, f[i]*f[j])
			}
		}
		return f
	}},
}

// penalties are the λ that compete, for standardised features and a mean over observations.
var penalties = []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}

// mostFeatures of a family that competes: the time goes by their third power, the memory by their second.
const mostFeatures = 1000 // 43 sources

// A mixRegression predicts a loss from weights.
type mixRegression struct {
	Family  string  // of features
	Penalty float64 // λ
	Error   float64 // root mean square of the leave-one-out errors, in the unit of the loss

	features  func([]float64) []float64
	mean, std []float64 // of the features
	slopes    []float64
	intercept float64
}

// fitMix fits losses over mixtures, at least three of them.
func fitMix(mixtures [][]float64, losses []float64) mixRegression {
	best := mixRegression{Error: math.Inf(1)}
	for _, f := range families {
		if len(f.features(mixtures[0])) > mostFeatures {
			continue
		}
		for _, penalty := range penalties {
			r := mixRegression{Family: f.name, Penalty: penalty, features: f.features}
			if r.fit(mixtures, losses) && r.Error < best.Error {
				best = r
			}
		}
	}
	return best
}

// fit reports whether it came to an answer.
func (r *mixRegression) fit(mixtures [][]float64, losses []float64) bool {
	n, d := len(mixtures), len(r.features(mixtures[0]))
	x := mat.NewDense(n, d, nil)
	for i, w := range mixtures {
		x.SetRow(i, r.features(w))
	}
	r.mean, r.std = make([]float64, d), make([]float64, d)
	for j := range d {
		column := mat.Col(nil, j, x)
		r.mean[j], r.std[j] = stat.PopMeanStdDev(column, nil)
		if r.std[j] < 1e-12 {
			r.std[j] = math.Inf(1) // a constant says nothing
		}
		for i := range n {
			x.Set(i, j, (x.At(i, j)-r.mean[j])/r.std[j])
		}
	}
	r.intercept = stat.Mean(losses, nil)
	y := mat.NewVecDense(n, nil)
	for i, l := range losses {
		y.SetVec(i, l-r.intercept)
	}
	gram := mat.NewSymDense(d, nil)
	gram.SymOuterK(1, x.T()) // XᵀX
	for j := range d {
		gram.SetSym(j, j, gram.At(j, j)+r.Penalty*float64(n))
	}
	var factor mat.Cholesky
	if !factor.Factorize(gram) {
		return false
	}
	var xy, slopes mat.VecDense
	xy.MulVec(x.T(), y)
	if factor.SolveVecTo(&slopes, &xy) != nil {
		return false
	}
	r.slopes = slopes.RawVector().Data
	sum := 0.0
	for i := range n {
		row := mat.NewVecDense(d, mat.Row(nil, i, x))
		var s mat.VecDense
		if factor.SolveVecTo(&s, row) != nil {
			return false
		}
		e := (y.AtVec(i) - mat.Dot(row, &slopes)) / (1 - 1/float64(n) - mat.Dot(row, &s))
		sum += e * e
	}
	r.Error = math.Sqrt(sum / float64(n))
	return !math.IsNaN(r.Error)
}

// predict returns the loss that a model trained on these weights is expected to have.
func (r *mixRegression) predict(w []float64) float64 {
	sum := r.intercept
	for j, f := range r.features(w) {
		sum += r.slopes[j] * (f - r.mean[j]) / r.std[j]
	}
	return sum
}

// folds of the cross-validation that crossPredict makes.
const folds = 5

// crossPredict predicts each loss by a regression that has not seen it: five-fold cross-validation, with the choice of family and penalty made
// anew in each fold.
func crossPredict(mixtures [][]float64, losses []float64) []float64 {
	predicted := make([]float64, len(losses))
	for fold := range folds {
		var w [][]float64
		var y []float64
		for i := range losses {
			if i%folds != fold {
				w, y = append(w, mixtures[i]), append(y, losses[i])
			}
		}
		r := fitMix(w, y)
		for i := fold; i < len(losses); i += folds {
			predicted[i] = r.predict(mixtures[i])
		}
	}
	return predicted
}

// rankCorrelation is Spearman's: that of the ranks. Where all of x or all of y are equal nothing is ranked: 0.
func rankCorrelation(x, y []float64) float64 {
	if r := stat.Correlation(ranks(x), ranks(y), nil); !math.IsNaN(r) {
		return r
	}
	return 0
}

// ranks returns the rank of each value; equal values share the mean of theirs.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	r := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			r[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return r
}

// mixtureSampler draws mixtures around the one that a search begins with, which is the natural one by default, as RegMix's authors do:
// from Dirichlet(s·p), p ∝ √natural, s log-uniform from 0.1, where one source has nearly all, to 5, where mixtures are like p. A source
// has at most 15 times its natural share.
type mixtureSampler struct{ prior, most []float64 }

const (
	priorPower                 = 0.5
	leastStrength, topStrength = 0.1, 5
	mostShare                  = 15
)

func newMixtureSampler(natural []float64) mixtureSampler {
	s := mixtureSampler{make([]float64, len(natural)), make([]float64, len(natural))}
	sum := 0.0
	for i, n := range natural {
		s.prior[i], s.most[i] = math.Pow(n, priorPower), min(mostShare*n, 1)
		sum += s.prior[i]
	}
	for i := range s.prior {
		s.prior[i] /= sum
	}
	return s
}

// draw returns mixture number index of a seed.
func (s mixtureSampler) draw(seed uint64, index int) []float64 {
	src := rand.NewPCG(seed, uint64(index))
	w := make([]float64, len(s.prior))
	for {
		strength := leastStrength * math.Pow(topStrength/leastStrength, rand.New(src).Float64())
		sum := 0.0
		for i, p := range s.prior {
			if w[i] = 0; p == 0 {
				continue
			}
			w[i] = distuv.Gamma{Alpha: p * strength, Beta: 1, Src: src}.Rand()
			sum += w[i]
		}
		if s.settle(w, sum) {
			return w
		}
	}
}

// settle makes w a mixture: shares that sum to 1, of which those below least are none. It reports whether the bounds hold.
func (s mixtureSampler) settle(w []float64, sum float64) bool {
	if !(sum > 1e-300) {
		return false // all underflowed
	}
	kept := 0.0
	for i := range w {
		if w[i] /= sum; w[i] < least {
			w[i] = 0
		}
		kept += w[i]
	}
	for i := range w {
		if w[i] /= kept; w[i] > s.most[i] {
			return false
		}
	}
	return true
}

const (
	firstCandidate = 1 << 20 // numbers of mixtures below it are those that proxies are trained on
	candidates     = 100_000 // mixtures that are predicted
	winners        = 100     // of which the mean is taken
)

// bestMix is the mean of those mixtures, of many drawn, for which the regression predicts the least loss. The mean is steadier
// than the best one, which is where the regression errs most in its own favour.
func bestMix(r mixRegression, s mixtureSampler, seed uint64) []float64 {
	type candidate struct {
		loss float64
		w    []float64
	}
	all := make([]candidate, candidates)
	for i := range all {
		w := s.draw(seed, firstCandidate+i)
		all[i] = candidate{r.predict(w), w}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.loss, b.loss) })
	mean := make([]float64, len(s.prior))
	for _, c := range all[:winners] {
		for i, x := range c.w {
			mean[i] += x / winners
		}
	}
	return mean
}
