package config

import (
	"testing"

	"anneal/dataset"

	"github.com/google/go-cmp/cmp"
)

// A run that read steps of 16 and of 128 rows before steps of 32 counts them as they were: 200·16 + 100·128 rows in its
// first 300 steps. Points in tokens stay where they are.
func TestAChangeComesAtItsStepAfterOtherBatches(t *testing.T) {
	with := func(overrides ...string) *Config {
		c, err := parse([]byte("data: {mix: [a=/d/a, b=/d/b]}\ntrain: {steps: 1000, batch_tokens: 8192}\n"), "run.yaml",
			append([]string{"data.weights=a=1, b=1 from 100, a=1 from 400 steps, b=1 from 6M tokens to 90%",
				"data.order=first x over 250, last y over 100 since 500"}, overrides...))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	past := []Stretch{
		{200, with("train.batch_tokens=4096", "data.weights=a=1")},
		{300, with("train.batch_tokens=32768", "data.weights=a=1")},
	}
	c := with()
	if c.After([]Stretch{{200, with()}}) != c {
		t.Error("a past with the same batches changes the configuration")
	}
	c = c.After(past)
	got, err := c.Mix([]uint64{100, 100})
	const first = 200*16 + 100*128
	a, b := []float64{1, 0}, []float64{0, 1}
	want := dataset.Mix{
		{Weights: a}, {From: 100 * 16, Weights: b}, {From: first + 100*32, Weights: a},
		{From: 23456, Weights: a, To: b}, // the step that reads token 6,000,000, of row 23,437, ends here
		{From: first + 600*32, Weights: b},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	o, err := c.Order()
	if o.Run != first+700*32 || o.First.Samples != 200*16+50*128 || o.Last.Samples != 100*32 ||
		o.Last.Since != first+200*32 || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
}
