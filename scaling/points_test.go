package scaling

import (
	"math"
	"slices"
	"strings"
	"testing"
)

const goodPoints = `name,loss,params,Tokens,flops
a,4.1,1e6,2e7,
b,3.9,1e6,4e7,2.4e14
c,3.8,2e6,2e7,
d,3.6,2e6,4e7,
e,3.5,4e6,8e7,
f,3.4,4e6,1.6e8,
`

func TestReadPoints(t *testing.T) {
	points, err := ReadPoints(strings.NewReader(goodPoints))
	if err != nil || len(points) != 6 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	if p := points[0]; p != (Point{Params: 1e6, Tokens: 2e7, Loss: 4.1, FLOPs: 1.2e14, Unique: 2e7}) {
		t.Errorf("the first point is %+v", p)
	}
	if p := points[1]; p.FLOPs != 2.4e14 {
		t.Errorf("the second point has %g FLOPs", p.FLOPs)
	}
	quoted := strings.Replace(goodPoints, "name,loss", `"name","loss"`, 1)
	marked, err := ReadPoints(strings.NewReader(byteOrderMark + quoted))
	if err != nil || !slices.Equal(marked, points) {
		t.Errorf("after a byte order mark, with a quoted header: %v, %v", marked, err)
	}
}

// All faults are said at once, each with its line.
func TestBadPoints(t *testing.T) {
	for text, want := range map[string][]string{
		"":                          {"empty"},
		"size,tokens\n1,2\n":        {"params", "loss", `"size,tokens"`},
		"params,tokens,loss,loss\n": {"names the column loss twice"},
		"params,tokens,loss,unique_tokens\n1e6,NaN,3,1\n\n-2,1e6,x,\n1e6,1e6\n" +
			"1e6,1e6,Inf,1\n2e6,0,1e99,1\n1e6,5,3,6\n": {
			"line 2: tokens is NaN", "line 4: params is -2", `line 4: loss is "x"`,
			"line 5 has 2 values, the header 4", "line 6: loss is +Inf",
			"line 7: tokens is 0, must be from 1 to 1e+50", "line 7: loss is 1e+99, must be from 1e-50 to 1e+50",
			"line 8: unique_tokens, 6, is above",
		},
		"params,tokens,loss\n1e30,1e30,3\n": {"line 2: 6·params·tokens is 6.0"},
		"params,tokens,loss\n1e-13,0.5,3\n": {
			"line 2: params is 1e-13, must be from 1 to 1e+50", "line 2: tokens is 0.5, must be from 1 to 1e+50",
		},
		"params,tokens,loss,unique_tokens\n1e6,1e7,3,1e6\n": {"tokens, of which repeated ones count less, has 1"},
		"params,tokens,loss\n1e6,1e7,\"3\n":                 {"line 2"},
		"params,tokens,loss\n1e6,1e7,3\"\nx,1e7,3\n":        {"line 2", `line 3: params is "x"`},
		"params,tokens,loss\n1M,1e7,3\n2M,1e7,3\n":          {`line 2: params is "1M"`},
		"params,tokens,loss\n1e6,1e7,3\n": {"1 point is too few", "at least 6",
			"params has 1 different value:"},
		strings.ReplaceAll(goodPoints, "4e6", "2e6"): {"params has 2 different values", "at least 3"},
	} {
		_, err := ReadPoints(strings.NewReader(text))
		if err == nil {
			t.Errorf("%q is read", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: the error lacks %q:\n%v", text, w, err)
			}
		}
	}
	many := "params,tokens,loss\n" + strings.Repeat("0,0,0\n", 1000)
	_, err := ReadPoints(strings.NewReader(many))
	if n := strings.Count(err.Error(), "\n"); n > 20 || !strings.Contains(err.Error(), "more") {
		t.Errorf("the error has %d lines:\n%.500s", n, err)
	}
}

// Whatever a file holds, it is refused or gives points that a fit can use.
func FuzzReadPoints(f *testing.F) {
	f.Add(goodPoints)
	f.Add("params,tokens,loss,flops,unique_tokens\n1,2,3,4,5\n")
	f.Fuzz(func(t *testing.T, text string) {
		points, err := ReadPoints(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, p := range points {
			if !(p.Params > 0 && p.Tokens > 0 && p.Loss > 0 && p.FLOPs > 0 && p.Unique > 0 && p.Unique <= p.Tokens) {
				t.Fatalf("%+v", p)
			}
		}
		if len(points) > 200 {
			return
		}
		if fit, err := FitPoints(points, 0); err == nil && (math.IsNaN(fit.Objective) || fit.Law.check() != nil) {
			t.Fatalf("%q has the fit %+v", text, fit)
		}
	})
}
