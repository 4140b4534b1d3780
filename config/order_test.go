package config

import (
	"strings"
	"testing"

	"anneal/dataset"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What data.order says, in samples of a run of 100 steps of 8 samples, written as the grammar allows.
func TestOrderInWords(t *testing.T) {
	base := []string{"data.path=d", "train.steps=100", "model.context=128", "train.batch_tokens=1024"}
	for text, want := range map[string]dataset.Order{
		"": {},
		"first compression over 15%": {Run: 800,
			First: dataset.First{Scores: "compression", Samples: 120, Start: 0.1, Pacing: dataset.Linear}},
		"last quality over 10%": {Run: 800, Last: dataset.Last{Scores: "quality", High: true, Samples: 80, Best: 0.2}},
		"first flesch over 15 steps, last flesch over 2048 tokens": {
			Run: 800, First: dataset.First{Scores: "flesch", High: true, Samples: 120, Start: 0.1,
				Pacing: dataset.Linear},
			Last: dataset.Last{Scores: "flesch", Samples: 16, Best: 0.2},
		},
		" last  low loss since 50% of 5% over 30 , first high mtld by root from 25% over 1": {
			Run: 800, First: dataset.First{Scores: "mtld", High: true, Samples: 8, Start: 0.25, Pacing: dataset.Root},
			Last: dataset.Last{Scores: "loss", Samples: 240, Best: 0.05, Since: 400},
		},
		"first a over 60%, last b over 40%": {Run: 800,
			First: dataset.First{Scores: "a", Samples: 480, Start: 0.1, Pacing: dataset.Linear}, Last: dataset.Last{
				Scores: "b", High: true, Samples: 320, Best: 0.2,
			}},
	} {
		c, err := Load("", append(base, "data.order="+text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got, err := c.Order()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
		again, err := Default().read(c.YAML(), Sources{File: "config.yaml"})
		if err != nil || again.Data.Order.String() != text {
			t.Errorf("%q came back from the file as %q, %v", text, again.Data.Order, err)
		}
	}
	for text, want := range map[string]string{
		"compression":                             "is not first SCORES",
		"first over 15%":                          "names no scores",
		"first high over 15%":                     "names no scores",
		"first Compression over 15%":              "names no scores",
		"first compression":                       "over \"\" is not a number of steps",
		"first compression over":                  "over \"\" is not a number of steps",
		"first compression over 0%":               "the run has 100",
		"first compression over 101":              "the run has 100",
		"first compression over 15% of 20%":       "\"of\" is not an option",
		"first compression over 15% over 20%":     "\"over\" is given twice",
		"first compression over 15% from 0%":      "is not a share",
		"first compression over 15% from 0.1":     "is not a share",
		"first compression over 15% by cube":      "is not a pacing",
		"first a over 15%, first b over 15%":      "given twice",
		"first a over 60%, last b over 41%":       "take 808 samples",
		"last b over 10% since 91%":               "since step 91",
		"last b over 10% since soon":              "since \"soon\"",
		"first compression over 15% and then all": "is not a number of steps",
		"first a over 15%,":                       "is not first SCORES",
	} {
		_, err := Load("", append(base, "data.order="+text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "try") {
			t.Errorf("%q: error %v does not say %q", text, err, want)
		}
	}
	// Under a ramp, steps are counted in the samples they read: the first 10 steps read two each, the rest eight.
	c, err := Load("", append(base, "train.micro_batch=2",
		"train.batch_ramp=256 until 2560", "data.order=first a over 11, last b over 1"))
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := c.Order(); o.Run != 740 || o.First.Samples != 28 || o.Last.Samples != 8 {
		t.Errorf("under a ramp: %+v, want 28 and 8 of 740 samples", o)
	}
}

// Whatever words are put together, what is accepted is an order of the run.
func TestAcceptedOrdersAreOrders(t *testing.T) {
	words := strings.Fields("first last , over from by of since low high mtld quality 0 1 7 50 90 % 15% 100% 0% 1e9% " +
		"steps tokens 3K root linear cube")
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		c := Default()
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 14).Draw(t, "words"), " ")
		if rapid.Bool().Draw(t, "phase") {
			text = "first mtld over 15%" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
				" from 7%", " by step", " by root", " from 100%", ", last low quality over 50 steps", " of 90%",
				" since 3K tokens", " since 50",
			}), 0, 2).Draw(t, "clauses"), "")
		}
		if err := c.Override("data.order=" + text); err != nil {
			t.Fatal(err)
		}
		o, err := c.Order()
		if err != nil || text == "" {
			return
		}
		accepted++
		first, last := o.First, o.Last
		if first.Samples+last.Samples > o.Run || last.Since > o.Run-last.Samples ||
			first.Scores == "" && last.Scores == "" ||
			first.Scores != "" && !(first.Start > 0 && first.Start <= 1 && first.Samples > 0) ||
			last.Scores != "" && !(last.Best > 0 && last.Best <= 1 && last.Samples > 0) {
			t.Fatalf("%q is %+v", text, o)
		}
	})
	if accepted == 0 {
		t.Error("none was accepted")
	}
}
