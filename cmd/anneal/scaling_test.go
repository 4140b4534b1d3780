package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"anneal/scaling"
)

// pointsFile writes the losses of a law with 0.3 % of reproducible noise.
func pointsFile(t *testing.T, dir string) string {
	t.Helper()
	text := "name,params,tokens,loss\n"
	for i := range 6 {
		for j := range 5 {
			n, d := 1e8*math.Pow(2, float64(i)), 2e9*math.Pow(2.5, float64(j))
			loss := scaling.Besiroglu.Loss(n, d) * (1 + 0.003*math.Sin(float64(17*i+5*j*j)))
			text += fmt.Sprintf("m%d-%d,%g,%g,%.5f\n", i, j, n, d, loss)
		}
	}
	path := filepath.Join(dir, "points.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// From points to a prediction: the fit is written into the study, and predict reads it there.
func TestScalingFitAndPredict(t *testing.T) {
	w := workshop{t, t.TempDir()}
	pointsFile(t, w.dir)
	v := w.object(exitOK, "scaling", "fit", w.dir, "--resamples", "100", "--svg", w.path("fit.svg"))
	w.keys(v, "law", "intervals", "objective", "approaches", "optima", "out", "seconds")
	if alpha := v["law"].(map[string]any)["alpha"].(float64); math.Abs(alpha-0.3478) > 0.05 {
		t.Errorf("alpha is %v", alpha)
	}
	if text, err := os.ReadFile(w.path("fit.svg")); err != nil || !strings.Contains(string(text), "95 % interval") {
		t.Errorf("the picture: %v, %.200s", err, text)
	}
	p := w.object(exitOK, "scaling", "predict", w.dir, "--flops", "1e21", "--serve", "1T")
	w.keys(p, "params", "tokens", "flops", "loss", "tokens_per_param", "intervals", "serving")
	loss, in := p["loss"].(float64), p["intervals"].(map[string]any)["loss"].(map[string]any)
	if !(in["low"].(float64) < loss && loss < in["high"].(float64)) {
		t.Errorf("the loss is %v, its interval %v", loss, in)
	}
	if want := scaling.Besiroglu.Optimum(1e21).Loss; math.Abs(loss-want) > 0.02*want {
		t.Errorf("the predicted loss is %v, of the true law %v", loss, want)
	}
	_, out, _ := anneal("scaling", "predict", w.dir, "--loss", "1.85", "--params", "1T")
	for _, want := range []string{
		`parameters +1.00T\n`, `training tokens .* interval [^ ]+T to endless\n`, `loss \(nats/token\) +1.850\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("a loss that some resamples do not reach: no %s in %s", want, out)
		}
	}
	code, out, errs := anneal("scaling", "predict", w.path("fit.json"), "--params", "7B", "--tokens", "2T")
	if code != exitOK || !strings.Contains(out, "2.00T") || !strings.Contains(errs, "times the compute") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// A study that went on after its fit has points that the fit does not know.
func TestPredictWarnsOfAStaleFit(t *testing.T) {
	w := workshop{t, t.TempDir()}
	path := pointsFile(t, w.dir)
	w.object(exitOK, "scaling", "fit", w.dir, "--resamples", "0")
	predict := func() string {
		_, _, errs := anneal("scaling", "predict", w.dir, "--flops", "1e12")
		return errs
	}
	if errs := predict(); strings.Contains(errs, "does not know") {
		t.Errorf("of a new fit it says: %s", errs)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "late,3e9,7e10,2.5")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if errs := predict(); !strings.Contains(errs, "has 1 point that its fit does not know") {
		t.Errorf("of an old fit it says: %s", errs)
	}
}

// The runs of a study differ by 8 times in tokens, so β is held fixed and the shortest runs are left out, unless flags
// say otherwise. For a plain file of points β is fitted too, and all points are used.
func TestAStudyIsFittedWithAHeldExponent(t *testing.T) {
	w := workshop{t, t.TempDir()}
	study := func(dir string, tokens ...float64) {
		csv := "params,tokens,loss\n"
		for _, n := range []float64{1e5, 2e5, 4e5, 8e5} {
			for _, d := range tokens {
				csv += fmt.Sprintf("%g,%g,%.6f\n", n, d, scaling.Besiroglu.Loss(n, d))
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "points.csv"), []byte(csv), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wide := t.TempDir()
	study(w.dir, 2e6, 4e6, 8e6, 16e6)
	study(wide, 2e6, 4e6, 8e6, 16e6, 48e6)
	for _, c := range []struct {
		args []string
		held any
		used float64
	}{
		{[]string{w.dir}, 0.37, 12}, {[]string{w.dir, "--from", "0"}, 0.37, 16},
		{[]string{w.dir, "--from", "3.5M"}, 0.37, 12},
		{[]string{wide}, 0.0, 20}, {[]string{wide, "--from", "3.5M"}, 0.37, 16}, // the points used decide
		{[]string{w.dir, "--beta", "0"}, 0.0, 12},
		{[]string{w.dir, "--beta", "0.5", "--from", "0"}, 0.5, 16}, {[]string{w.path("points.csv")}, 0.0, 16},
	} {
		v := w.object(exitOK, append([]string{"scaling", "fit", "--resamples", "0"}, c.args...)...)
		if v["beta_held"] != c.held || v["points"] != c.used {
			t.Errorf("%q: β held at %v with %v points, want %v and %v", c.args, v["beta_held"], v["points"], c.held,
				c.used)
		}
	}
}

// Without a fit the published constants answer.
func TestScalingPredictByPublishedLaws(t *testing.T) {
	w := workshop{t, t.TempDir()}
	for name, ratio := range map[string]float64{"besiroglu": 18.4, "hoffmann": 92.6} {
		v := w.object(exitOK, "scaling", "predict", name, "--flops", "5.76e23")
		if got := v["tokens_per_param"].(float64); math.Abs(got-ratio) > 0.1 {
			t.Errorf("%s: %v tokens per parameter, want %v", name, got, ratio)
		}
	}
	code, out, _ := anneal("scaling", "predict", "--flops", "1e21", "--unique-tokens", "10B")
	if code != exitOK || !strings.Contains(out, "Besiroglu") || !strings.Contains(out, "epochs") {
		t.Errorf("exit %d, %s", code, out)
	}
	code, out, _ = anneal("scaling", "predict", "--flops", "1e21", "--params", "70B", "--unique-tokens", "30B")
	if code != exitOK || !strings.Contains(out, "worth of parameters") || strings.Contains(out, "epochs") {
		t.Errorf("parameters that the text cannot fill, in less than an epoch: exit %d, %s", code, out)
	}
}

// Every mistake ends with its exit code and says what to do.
func TestScalingMistakes(t *testing.T) {
	w := workshop{t, t.TempDir()}
	bad := w.path("bad.csv")
	if err := os.WriteFile(bad, []byte("params,tokens,loss\n1e6,NaN,3\n1e6,1e7,-2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	good := pointsFile(t, t.TempDir())
	junk := w.path("junk.json")
	if err := os.WriteFile(junk, []byte(`{"law":{"E":1}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"fit " + bad, exitUsage, []string{"bad.csv", "line 2: tokens is NaN", "line 3: loss is -2"}},
		{"fit " + good + " --from 1T", exitUsage, []string{"0 points are too few", "leaves 0 of "}},
		{"fit " + w.dir, exitUsage, []string{"no points.csv"}},
		{"fit " + w.path("none.csv"), exitData, []string{"none.csv"}},
		{"fit " + bad + " --beta 5", exitUsage, []string{"--beta: β cannot be held at 5", "above 0.01 and below 5"}},
		{"fit " + bad + " --beta 0.005", exitUsage, []string{"--beta", "0.005"}},
		{"fit " + bad + " --beta=-1", exitUsage, []string{"--beta", "-1"}},
		{"fit " + bad + " --from=-1", exitUsage, []string{"--from", "-1"}},
		{"fit " + bad + " --resamples 100001", exitUsage, []string{"--resamples 100001 is more than 100,000"}},
		{"fit " + bad + " --resamples 1", exitUsage, []string{"--resamples 1 is too few", "at least 100"}},
		{"fit " + bad + " --resamples 99", exitUsage, []string{"--resamples 99"}},
		{"predict --flops 1e300", exitUsage, []string{"1e300", "from 1 to 1e50"}},
		{"predict --params 0.5 --tokens 2B", exitUsage, []string{"0.5", "from 1 to 1e50"}},
		{"predict --flops 1", exitUsage, []string{"no model is that small", "0.0477 parameters"}},
		{"predict --loss 1.8172", exitUsage, []string{"a loss of 1.8172 is", "above 1.8172"}},
		{"predict", exitUsage, []string{"nothing is asked", "--flops"}},
		{"predict " + w.dir + " --flops 1e21", exitUsage, []string{"no fit.json", "try `anneal scaling fit "}},
		{"predict " + junk + " --flops 1e21", exitData, []string{"junk.json", "not a fit"}},
		{"predict hoffman --flops 1e21", exitUsage, []string{"neither a file nor a published law", "try hoffmann"}},
		{"predict " + w.path("none.json") + " --flops 1e21", exitData, []string{"no such file"}},
		{"predict --flops 1e21 --loss 2", exitUsage, []string{"two models"}},
		{"predict --flops 1e21 --params 1B --tokens 2B", exitUsage, []string{"more than two"}},
		{"predict --loss 1.5", exitUsage, []string{"out of reach", "1.817"}},
		{"predict --flops NaN", exitUsage, []string{"NaN"}},
		{"predict --flops -1", exitUsage, []string{"-1"}},
		{"predict --loss 2 --unique-tokens 1B", exitUsage, []string{"different tokens"}},
		{"predict --flops 1e21 --serve 1T --unique-tokens 1B", exitUsage, []string{"--serve"}},
	} {
		code, _, errs := anneal(append([]string{"scaling"}, strings.Fields(c.args)...)...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.args, code, c.code, errs)
		}
		for _, want := range c.says {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: the error lacks %q: %s", c.args, want, errs)
			}
		}
	}
}

func TestShortNumbers(t *testing.T) {
	for x, want := range map[float64]string{
		0.5: "0.5", 999: "999", 999.7: "1.00K", 1000: "1.00K", 2.78e9: "2.78B", 6e10: "60.0B", 9.996e8: "1.00B",
		123.4e12: "123T", 1e21: "1.00e+21",
	} {
		if got := short(x); got != want {
			t.Errorf("%v is written %s, want %s", x, got, want)
		}
	}
}
