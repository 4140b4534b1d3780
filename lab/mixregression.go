package lab

import (
	"cmp"
	"math"
	"slices"
)

// The regression of RegMix predicts the loss of a model from the weights w of k sources. Two families of features
// compete. They are standardised and fitted by ridge regression with a free intercept:
//
//	linear:         w₁ … w_k
//	log-quadratic:  ln wᵢ and ln wᵢ · ln wⱼ, because losses fall like powers of a weight, and rise when other sources
//	                lose theirs
//
// The family and the penalty with the least leave-one-out error are used. Ridge regression is solved in its dual form
// (Saunders, Gammerman & Vovk 1998), with one unknown for each of n mixtures, which gives that error in closed form:
//
//	K = XXᵀ + λnI;  α = K⁻¹y;  slopes = Xᵀα;  error i = αᵢ / (K⁻¹ᵢᵢ − 1/(λn²))
//
// where the last term is the contribution of the intercept.

// least is the weight below which a source is left out of a mixture, because it would be only a few rows of a proxy's
// run.
const least = 1e-3

// families of features, with their names in the report.
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

// penalties are the values of λ that compete, for standardised features and a mean over observations.
var penalties = []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}

// mostFeatures is the largest number of features of a family; it limits the time.
const mostFeatures = 1000 // 43 sources

// A mixRegression predicts a loss from weights.
type mixRegression struct {
	Family  string  // family of features
	Penalty float64 // λ
	Error   float64 // root mean square of the leave-one-out errors, in the unit of the loss

	features  func([]float64) []float64
	mean, std []float64 // of the features
	slopes    []float64
	intercept float64
}

// fitMix fits the losses of at least three mixtures.
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

// fit reports whether the system could be solved.
func (r *mixRegression) fit(mixtures [][]float64, losses []float64) bool {
	n := float64(len(mixtures))
	x := make([][]float64, len(mixtures)) // [n, features], standardised
	for i, w := range mixtures {
		x[i] = slices.Clone(r.features(w))
	}
	r.standardise(x)
	r.intercept = mean(losses)
	y := make([]float64, len(losses))
	for i, l := range losses {
		y[i] = l - r.intercept
	}
	k := make([][]float64, len(x)) // [n, n], the lower triangle
	for i := range x {
		k[i] = make([]float64, i+1)
		for j := range k[i] {
			k[i][j] = dot(x[i], x[j])
		}
		k[i][i] += r.Penalty * n
	}
	if !cholesky(k) {
		return false
	}
	alpha := choleskySolve(k, y)
	r.slopes = make([]float64, len(r.mean))
	for i, a := range alpha {
		for j := range r.slopes {
			r.slopes[j] += a * x[i][j]
		}
	}
	sum := 0.0
	for i := range x {
		unit := make([]float64, len(x))
		unit[i] = 1
		e := alpha[i] / (choleskySolve(k, unit)[i] - 1/(r.Penalty*n*n))
		sum += e * e
	}
	r.Error = math.Sqrt(sum / n)
	return !math.IsNaN(r.Error)
}

// standardise gives each column of x a mean of 0 and a standard deviation of 1, and stores both in r.
func (r *mixRegression) standardise(x [][]float64) {
	r.mean, r.std = make([]float64, len(x[0])), make([]float64, len(x[0]))
	column := make([]float64, len(x))
	for j := range r.mean {
		for i := range x {
			column[i] = x[i][j]
		}
		r.mean[j] = mean(column)
		for _, v := range column {
			r.std[j] += (v - r.mean[j]) * (v - r.mean[j])
		}
		r.std[j] = math.Sqrt(r.std[j] / float64(len(x)))
		if r.std[j] < 1e-12 {
			r.std[j] = math.Inf(1) // a constant feature has no effect
		}
		for i := range x {
			x[i][j] = (x[i][j] - r.mean[j]) / r.std[j]
		}
	}
}

// predict returns the expected loss of a model trained on these weights.
func (r *mixRegression) predict(w []float64) float64 {
	sum := r.intercept
	for j, f := range r.features(w) {
		sum += r.slopes[j] * (f - r.mean[j]) / r.std[j]
	}
	return sum
}

// folds is the number of folds in crossPredict.
const folds = 5

// crossPredict predicts each loss by a regression that has not seen it. It uses five-fold cross-validation, and
// chooses the family and the penalty again in each fold.
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

// rankCorrelation is Spearman's rank correlation. It is 0 if all values of x or all of y are equal.
func rankCorrelation(x, y []float64) float64 {
	x, y = ranks(x), ranks(y)
	middle := mean(x) // mean rank, the same for both
	for i := range x {
		x[i], y[i] = x[i]-middle, y[i]-middle
	}
	if r := dot(x, y) / math.Sqrt(dot(x, x)*dot(y, y)); !math.IsNaN(r) {
		return r
	}
	return 0
}

// ranks returns the rank of each value. Equal values share the mean of their ranks.
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
