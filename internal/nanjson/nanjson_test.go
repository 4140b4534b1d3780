package nanjson

import (
	"encoding/json"
	"math"
	"testing"

	_ "anneal/internal/torture"
)

type inner struct {
	Val  float64            `json:"val,omitempty"`
	Each map[string]float64 `json:"each,omitempty"`
}

type outer struct {
	Step  int     `json:"step"`
	Loss  float64 `json:"loss"`
	Clip  float64 `json:"clip,omitempty"`
	Skip  bool    `json:"skip,omitempty"`
	Local float64 `json:"-"`
	inner
	Last string `json:"last"`
}

// An unknown number is null, or left out with omitempty; a known 0 is written; reading returns the same values.
func TestUnknownNumbersRoundTrip(t *testing.T) {
	for want, change := range map[string]func(*outer){
		`{"step":3,"loss":null,"last":"x"}`: func(*outer) {},
		`{"step":3,"loss":2.5,"clip":0,"val":1e-07,"last":"x"}`: func(o *outer) {
			o.Loss, o.Clip, o.Val = 2.5, 0, 1e-7
		},
		`{"step":3,"loss":null,"skip":true,"each":{"a":1},"last":"x"}`: func(o *outer) {
			o.Loss, o.Clip, o.Val = math.Inf(1), math.Inf(1), math.Inf(-1)
			o.Skip, o.Each = true, map[string]float64{"a": 1}
		},
	} {
		var o outer
		Forget(&o)
		o.Step, o.Last = 3, "x"
		change(&o)
		text, err := Marshal(o)
		if err != nil || string(text) != want {
			t.Errorf("%s, %v, want %s", text, err, want)
		}
		var back outer
		Forget(&back)
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if again, err := Marshal(back); err != nil || string(again) != want {
			t.Errorf("read back: %s, %v, want %s", again, err, want)
		}
	}
	if _, err := Marshal(struct {
		F func() `json:"f"`
	}{func() {}}); err == nil {
		t.Error("a function was written")
	}
}
