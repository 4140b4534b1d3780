package scaling

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
)

// grid returns the points of a law for each size and each number of tokens, with log-normal noise.
func grid(law Law, sizes, tokens []float64, noise float64, seed uint64) (points []Point) {
	random := rand.New(rand.NewPCG(seed, 1))
	for _, n := range sizes {
		for _, d := range tokens {
			points = append(points, Point{
				Params: n, Tokens: d, Unique: d, FLOPs: Training(n, d),
				Loss: law.Loss(n, d) * math.Exp(noise*random.NormFloat64()),
			})
		}
	}
	return points
}

// spread returns n values from low to high with equal ratios.
func spread(low, high float64, n int) (list []float64) {
	for i := range n {
		list = append(list, low*math.Pow(high/low, float64(i)/float64(n-1)))
	}
	return list
}

// The sets and the best of hundreds of searches from a grid of starts: testdata/make_multistart.py.
func TestFitEqualsTheBestOfManyStarts(t *testing.T) {
	text, err := os.ReadFile("testdata/multistart.json")
	if err != nil {
		t.Fatal(err)
	}
	var sets []struct {
		Name      string
		Points    [][3]float64
		Objective float64
		Law
	}
	if err := json.Unmarshal(text, &sets); err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		var points []Point
		for _, p := range s.Points {
			points = append(points, Point{
				Params: p[0], Tokens: p[1], Loss: p[2], Unique: p[1], FLOPs: Training(p[0], p[1]),
			})
		}
		f, err := FitPoints(points, 0)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if f.Objective > s.Objective*(1+1e-7)+1e-15 {
			t.Errorf("%s: the objective is %.12g, the best of many starts has %.12g",
				s.Name, f.Objective, s.Objective)
		}
		if f.Objective > s.Objective*(1-1e-6) { // the same minimum, not a better one
			for _, c := range []struct {
				what      string
				got, want float64
			}{{"E", f.Law.E, s.E}, {"alpha", f.Law.Alpha, s.Alpha}, {"beta", f.Law.Beta, s.Beta}} {
				close(t, s.Name+": "+c.what, c.got, c.want, 1e-4)
			}
		}
	}
}

// The law of points with 0.5 % noise is found, whatever its scale.
func TestFitRecoversTheLaw(t *testing.T) {
	for _, law := range []Law{
		Besiroglu, Hoffmann,
		{E: 1.1, A: 40, B: 160, Alpha: 0.32, Beta: 0.37},
	} {
		f := must(FitPoints(grid(law, spread(1e6, 1e10, 30), spread(1e8, 1e12, 30), 0.005, 7), 0))
		if math.Abs(f.Law.Alpha-law.Alpha) > 0.01 || math.Abs(f.Law.Beta-law.Beta) > 0.01 {
			t.Errorf("the law of %+v with noise is found as %+v", law, f.Law)
		}
	}
}

// Repeated tokens count for what they are worth.
func TestFitOfRepeatedTokens(t *testing.T) {
	points := grid(Besiroglu, spread(1e8, 1e10, 5), spread(1e9, 1e11, 5), 0, 1)
	for i := range points {
		p := &points[i]
		p.Unique = p.Tokens / float64(1+i%7)
		p.Loss = Besiroglu.Loss(p.Params, EffectiveTokens(p.Tokens, p.Unique))
	}
	f := must(FitPoints(points, 0))
	close(t, "alpha", f.Law.Alpha, Besiroglu.Alpha, 1e-5)
	close(t, "beta", f.Law.Beta, Besiroglu.Beta, 1e-5)
}

// 95 % intervals hold the truth in most repetitions of an experiment, and equal seeds give equal laws.
func TestBootstrap(t *testing.T) {
	const experiments = 40
	held := 0
	for i := range experiments {
		f := must(FitPoints(grid(Besiroglu, spread(1e8, 3e9, 6), spread(2e9, 1e11, 5), 0.004, uint64(i)), 0))
		f.Bootstrap(60, 1)
		a := f.Interval(func(l Law) float64 { a, _ := l.Exponents(); return a })
		if truth, _ := Besiroglu.Exponents(); a.Low <= truth && truth <= a.High {
			held++
		}
		if i > 0 {
			continue
		}
		g := &Fit{Law: f.Law, Points: f.Points}
		g.Bootstrap(60, 1)
		if !reflect.DeepEqual(f.Resamples, g.Resamples) {
			t.Error("equal seeds give other laws")
		}
		if g.Bootstrap(60, 2); reflect.DeepEqual(f.Resamples, g.Resamples) {
			t.Error("other seeds give equal laws")
		}
	}
	if held < 0.8*experiments {
		t.Errorf("%d of %d intervals of 95 %% hold the truth", held, experiments)
	}
}

func TestPercentile(t *testing.T) {
	for share, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4, 0.25: 1.75} {
		close(t, "percentile", percentile([]float64{4, 1, 3, 2}, share), want, 1e-12)
	}
	endless := math.Inf(1)
	if p := percentile([]float64{1, endless, endless, endless}, 0.5); p != endless {
		t.Errorf("between two values that are endless the percentile is %v", p)
	}
}

// What β cannot be held at is not blamed on the points.
func TestBetaOffTheBoundsIsRefused(t *testing.T) {
	for beta, ok := range map[float64]bool{0: true, 0.37: true, 4.9: true, 5: false, 0.005: false, -1: false} {
		_, err := FitPoints(nil, beta)
		if few := new(PointsError); errors.As(err, &few) != ok {
			t.Errorf("β = %v: %v", beta, err)
		}
	}
}

// Points that do not show the effect of size or of tokens have no law.
func TestPointsWithoutALaw(t *testing.T) {
	rising := grid(Besiroglu, spread(1e8, 1e10, 4), spread(1e9, 1e11, 4), 0, 1)
	for i := range rising {
		rising[i].Loss = 3 + 0.1*math.Log(rising[i].Params) + Besiroglu.Loss(1e9, rising[i].Tokens)
	}
	constant := grid(Besiroglu, spread(1e8, 1e10, 4), spread(1e9, 1e11, 4), 0, 1)
	for i := range constant {
		constant[i].Loss = 3
	}
	for _, points := range [][]Point{rising, constant} {
		if f, err := FitPoints(points, 0); err == nil {
			t.Errorf("a law was found: %+v", f.Law)
		}
	}
}

// Points whose tokens follow from their sizes have no law, since the effects of both cannot be told apart: without
// noise a fit of them is exact and wrong. Points of equal FLOPs, and points whose ratio varies, have one.
func TestPointsWithEqualTokensPerParameterAreRefused(t *testing.T) {
	points := func(noise float64, tokens func(i int, n float64) float64) (list []Point) {
		for i, n := range spread(1e7, 1e9, 7) {
			list = append(list, grid(Besiroglu, []float64{n}, []float64{tokens(i, n)}, noise, uint64(i))...)
		}
		return list
	}
	for _, beta := range []float64{0, 0.37} {
		for _, noise := range []float64{0, 0.003} {
			ratio := points(noise, func(i int, n float64) float64 { return (20 + 0.5*float64(i%2)) * n })
			_, err := FitPoints(ratio, beta)
			if err == nil || strings.Contains(err.Error(), "differ more in") ||
				!strings.Contains(err.Error(), "about the same number of tokens per parameter, 20.2,") {
				t.Errorf("β %v, noise %v, equal ratios: %v", beta, noise, err)
			}
			power := points(noise, func(_ int, n float64) float64 { return 1e3 * math.Pow(n, 0.75) })
			if _, err := FitPoints(power, beta); err == nil || !strings.Contains(err.Error(), "about as params^0.75") {
				t.Errorf("β %v, noise %v, a power of the size: %v", beta, noise, err)
			}
		}
	}
	for name, tokens := range map[string]func(int, float64) float64{
		"ratios of 10 and 40": func(i int, n float64) float64 { return 10 * math.Pow(4, float64(i%2)) * n },
		"equal FLOPs":         func(_ int, n float64) float64 { return 1e19 / n },
	} {
		f, err := FitPoints(points(0, tokens), 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		close(t, name+": alpha", f.Law.Alpha, Besiroglu.Alpha, 1e-2)
		close(t, name+": beta", f.Law.Beta, Besiroglu.Beta, 1e-2)
	}
}

// Noise-free curves and narrow profiles have the exponent of the closed form.
func TestOtherApproaches(t *testing.T) {
	for _, law := range []Law{Besiroglu, Hoffmann} {
		want, _ := law.Exponents()
		var profiles []Point
		for _, flops := range spread(1e18, 1e21, 5) {
			for _, factor := range []float64{0.7, 0.85, 1, 1.15, 1.4} {
				n := law.Optimum(flops).Params * factor
				d := flops / 6 / n
				profiles = append(profiles, Point{Params: n, Tokens: d, Unique: d, FLOPs: flops, Loss: law.Loss(n, d)})
			}
		}
		f, err := IsoFLOP(profiles)
		if err != nil || math.Abs(f.Exponent-want) > 0.01 || len(f.Optima) != 5 {
			t.Errorf("IsoFLOP: %+v, %v; want the exponent %.3f", f, err, want)
		}
		close(t, "N by IsoFLOP", f.Params(1e20), law.Optimum(1e20).Params, 0.02)
		var curves []Point
		for _, n := range spread(1e7, 1e10, 12) {
			d := law.OptimumOfSize(n).Tokens
			curves = append(curves, grid(law, []float64{n}, spread(d/30, d*30, 40), 0, 1)...)
		}
		f, err = Envelope(curves)
		if err != nil || math.Abs(f.Exponent-want) > 0.02 {
			t.Errorf("envelope: %+v, %v; want the exponent %.3f", f, err, want)
		}
		close(t, "N by the envelope", f.Params(1e20), law.Optimum(1e20).Params, 0.1)
	}
	few := grid(Besiroglu, spread(1e8, 1e9, 3), []float64{2e9, 3e9}, 0, 1)
	if _, err := IsoFLOP(few); err != ErrNoIsoFLOP {
		t.Errorf("IsoFLOP of a grid without equal FLOPs: %v", err)
	}
	if _, err := Envelope(few); err != ErrNoEnvelope {
		t.Errorf("the envelope of three sizes: %v", err)
	}
}

func TestFitAsAFile(t *testing.T) {
	f := must(FitPoints(grid(Besiroglu, spread(1e8, 1e10, 4), spread(1e9, 1e11, 4), 0.01, 1), 0))
	f.Bootstrap(5, 1)
	var file bytes.Buffer
	if err := f.Write(&file); err != nil {
		t.Fatal(err)
	}
	if g := must(ReadFit(file.Bytes())); !reflect.DeepEqual(f, g) {
		t.Errorf("a fit comes back from its file as %+v, was %+v", g, f)
	}
	for _, text := range []string{``, `{}`, `[]`, `{"law":{"E":1,"A":1,"B":1,"alpha":1}}`, `{"law":{"E":1e999}}`,
		`{"law":{"E":1,"A":1,"B":1,"alpha":1,"beta":1},"resamples":[{"E":-1}]}`,
		`{"law":{"E":1,"A":1,"B":1,"alpha":1,"beta":1},"points":[{"params":0}]}`} {
		if _, err := ReadFit([]byte(text)); err == nil {
			t.Errorf("%q is read as a fit", text)
		}
	}
}

// Points whose tokens differ eightfold cannot tell E from β: with β held, a law predicts eight times the operations
// better, and only E, A, B and α are fitted.
func TestAHeldExponentPredictsBeyondAFewTokens(t *testing.T) {
	held, free := 0.0, 0.0
	want := Besiroglu.Loss(4e9, 8e10)
	for seed := range uint64(20) {
		points := grid(Besiroglu, spread(1e8, 2e9, 5), spread(2.5e9, 2e10, 4), 0.003, seed)
		f := must(FitPoints(points, Besiroglu.Beta))
		if math.Abs(f.Law.Beta-Besiroglu.Beta) > 1e-12 {
			t.Fatalf("β is %v, held at %v", f.Law.Beta, Besiroglu.Beta)
		}
		f.Bootstrap(3, seed)
		for _, l := range f.Resamples {
			if math.Abs(l.Beta-Besiroglu.Beta) > 1e-12 {
				t.Errorf("a resample has β = %v", l.Beta)
			}
		}
		held += math.Abs(f.Law.Loss(4e9, 8e10)/want-1) / 20
		g, err := FitPoints(points, 0)
		if err != nil { // not even that they fall with a power
			free += 0.02 / 20
			continue
		}
		free += math.Abs(g.Law.Loss(4e9, 8e10)/want-1) / 20
	}
	if held > 0.006 || free < 1.1*held {
		t.Errorf("mean errors of the prediction: %.4f with β held, %.4f without", held, free)
	}
}

// A law that holds predicts what was left out; one of points with a break says by how much it misses, and to which
// side.
func TestHeldBackPointsShowWhatALawMisses(t *testing.T) {
	sizes, tokens := spread(1e6, 1e8, 5), spread(1e8, 1e10, 5)
	f, err := FitPoints(grid(Besiroglu, sizes, tokens, 0, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	list := f.HeldBack()
	if len(list) != 2 || list[0].Column != "tokens" || list[1].Column != "params" || list[0].Points != 5 {
		t.Fatalf("%+v", list)
	}
	for _, h := range list {
		exact := math.Abs(h.Mean) < 1e-3 && math.Abs(h.Worst) >= math.Abs(h.Mean)
		if !exact || math.Abs(h.Factor-math.Sqrt(10)) > 1e-9 {
			t.Errorf("of an exact law: %+v", h)
		}
	}
	points := grid(Besiroglu, sizes, tokens, 0, 1)
	for i := range points {
		if points[i].Tokens > 9e9 {
			points[i].Loss *= 0.95 // the longest runs do better than the law of the others says
		}
	}
	if f, err = FitPoints(points, 0); err != nil {
		t.Fatal(err)
	}
	if h := f.HeldBack()[0]; math.Abs(h.Mean-(1/0.95-1)) > 1e-3 {
		t.Errorf("with a break: %+v, want a prediction 5 %% too high", h)
	}
	if list := (&Fit{Points: grid(Besiroglu, sizes[:3], tokens[:3], 0, 1)}).HeldBack(); len(list) != 0 {
		t.Errorf("of points that fit only together: %+v", list)
	}
}

// Points without FLOPs and different tokens, as a program writes them, have the fit of complete ones.
func TestZerosOfPointsStandForTheUsual(t *testing.T) {
	points := grid(Besiroglu, spread(1e6, 1e8, 4), spread(1e7, 1e9, 4), 0.01, 1)
	bare := make([]Point, len(points))
	for i, p := range points {
		bare[i] = Point{Params: p.Params, Tokens: p.Tokens, Loss: p.Loss}
	}
	want, err := FitPoints(points, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FitPoints(bare, 0)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v: %v", got, want, err)
	}
	if want.Residual(points[0]) != want.Residual(bare[0]) {
		t.Errorf("residuals %v and %v", want.Residual(points[0]), want.Residual(bare[0]))
	}
	frontier, err := Envelope(points)
	if again, e := Envelope(bare); err != nil || e != nil || !reflect.DeepEqual(again, frontier) {
		t.Errorf("envelopes %v and %v: %v, %v", frontier, again, err, e)
	}
}

// A number that no model has is named, with its point, by all three approaches.
func TestAPointThatCannotBeIsNamed(t *testing.T) {
	points := grid(Besiroglu, spread(1e6, 1e8, 4), spread(1e7, 1e9, 4), 0, 1)
	points[3].Loss, points[5].Params = math.NaN(), -1
	_, fit := FitPoints(points, 0)
	_, envelope := Envelope(points)
	_, iso := IsoFLOP(points)
	for _, err := range []error{fit, envelope, iso} {
		if err == nil || !strings.Contains(err.Error(), "point 3: loss is NaN") ||
			!strings.Contains(err.Error(), "point 5: params is -1, must be from 1 to 1e+50") {
			t.Errorf("%v", err)
		}
	}
}

func TestWithoutPointsThereIsNothingToResample(t *testing.T) {
	var f Fit
	f.Bootstrap(3, 1)
	if len(f.Resamples) != 0 || !math.IsNaN(f.Error()) {
		t.Errorf("%d laws, error %v", len(f.Resamples), f.Error())
	}
}
