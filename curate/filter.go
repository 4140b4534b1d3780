package curate

import "math"

// Bound is a filter's range for one measurement: a document outside [Min, Max] is dropped.
type Bound struct {
	Name     string
	Min, Max float64
}

func atLeast(name string, v float64) Bound { return Bound{name, v, math.Inf(1)} }
func atMost(name string, v float64) Bound  { return Bound{name, math.Inf(-1), v} }

// unbounded is the bound of a measurement that drops nothing.
func unbounded(name string) Bound { return Bound{name, math.Inf(-1), math.Inf(1)} }

func between(name string, lo, hi float64) Bound { return Bound{name, lo, hi} }

func (b Bound) holds(v float64) bool { return v >= b.Min && v <= b.Max }

// Filter measures a document and compares the numbers with bounds. The first bound that fails, in order, drops the
// document. All quantities are measured, so that other bounds can be tried later without the text.
type Filter struct {
	Name    string
	Bounds  []Bound
	measure func(d *Doc, values []float64) // one for each bound; may change the text

	values []float64
	names  []string
}

// Apply measures the document, adds the numbers to its signals as NAME.BOUND, and judges it.
func (f *Filter) Apply(d *Doc) Verdict {
	if f.values == nil {
		f.values = make([]float64, len(f.Bounds))
		for _, b := range f.Bounds {
			f.names = append(f.names, f.Name+"."+b.Name)
		}
	}
	clear(f.values)
	f.measure(d, f.values)
	verdict := Verdict{}
	for i, b := range f.Bounds {
		d.Add(f.names[i], f.values[i])
		if !verdict.Drop && !b.holds(f.values[i]) {
			verdict = Verdict{Drop: true, Rule: f.names[i], Value: f.values[i]}
		}
	}
	return verdict
}

// ratio returns a/b, and 0 if b is 0.
func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
