package model

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	sparse "anneal/attention"
	"anneal/nn"
)

// shape is a Config with no field at its zero value.
func shape() Config {
	return Config{
		Family: "anneal", Layers: 4, Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Context: 32,
		Vocab: 61, TieEmbeddings: true, QKNorm: true, QKVBias: true,
		Attention: sparse.Patterns{sparse.Window{Keys: 8}, sparse.Full{}}, Positions: Positions{"rope", "none"},
		RopeTheta: 1e4, RopeThetaLocal: 1e3, ScoreDim: 24, AttentionSinks: true,
		KVLoraRank: 12, RopeHeadDim: 4, AttentionSoftcap: 50, LongformerGlobalProjections: true, ShortConv: 4,
		RopeScaling:         nn.RoPEScaling{Kind: "yarn", Factor: 4, Fast: 32, Slow: 1},
		RopeOriginalContext: 8, RopeLayout: "interleaved",
		NormEps: 1e-5, LogitSoftcap: 30, InitStd: 0.02, Init: "he", ZeroInit: "head",
		MuP: true, MuPBaseDim: 16, MuPBaseHeadDim: 8, MuPBaseFFN: 24, MuPBaseLayers: 2,
		MuPInputScale: 2, MuPOutputScale: 3,
		Activation: "relu2", Experts: 8, ExpertsPerToken: 2, ExpertFFN: 24, SharedExpertFFN: 12,
		NormaliseExperts: true, RouterAuxLoss: 0.01, RouterZLoss: 0.001,
		ValueEmbeddings: "all", X0Skip: true, Bigram: 64, Smear: true,
		LoRARank: 4, LoRAAlpha: 8, LoRATargets: "mlp.*", LoRADora: true,
		Dropout: 0.1, StochasticDepth: 0.2,
		Recompute: Layout{Whole: 2, Segment: 1}, LogitBytes: 1 << 20,
	}
}

// other changes a value to another one.
func other(t *testing.T, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *sparse.Patterns:
		*x = sparse.Patterns{sparse.Full{}}
	case *Positions:
		*x = Positions{"alibi"}
	case *nn.RoPEScaling:
		x.Factor++
	case *Layout:
		x.Whole++
	case *string:
		*x += "s"
	case *int:
		*x++
	case *float64:
		*x /= 2
	case *bool:
		*x = !*x
	default:
		t.Fatalf("no other value of type %v is known", v.Type())
	}
}

// A field that the comparison forgets would let weights be trained on as another model. Every one is compared, by the
// name of its key, but for those that are no keys.
func TestEveryFieldOfTheShapeIsCompared(t *testing.T) {
	free := []string{ // that weights do not depend on: changing one must be thought over
		"model.context", "model.init_std", "model.init", "model.zero_init", "model.mup_base_ffn",
		"model.mup_base_layers", "model.dropout", "model.stochastic_depth",
		"model.router_aux_loss", "model.router_z_loss",
	}
	was := shape()
	if d := was.Differences(shape()); d != nil {
		t.Errorf("equal shapes differ: %+v", d)
	}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if reflect.ValueOf(was).Field(i).IsZero() {
			t.Errorf("%s is 0 in this test", f.Name)
		}
		now := shape()
		other(t, reflect.ValueOf(&now).Elem().Field(i))
		d := now.Differences(was)
		key, tagged := f.Tag.Lookup("yaml")
		switch key = "model." + key; {
		case !tagged:
			t.Errorf("%s is neither a key nor, by yaml:\"-\", none", f.Name)
		case key == "model.-" && (d != nil || f.Tag.Get("json") != "-"):
			t.Errorf("%s is no part of the shape, but compared or saved: %+v", f.Name, d)
		case key != "model.-" && (len(d) != 1 || d[0].Key != key || d[0].Now == d[0].Was):
			t.Errorf("another %s makes %+v, want a difference of %s", f.Name, d, key)
		case key != "model.-" && d[0].Free != slices.Contains(free, key):
			t.Errorf("%s is free: %v", key, d[0].Free)
		}
	}
}

// What is not said is the default, and the base of a muP that is off is not read.
func TestShapesOfOneModelDoNotDiffer(t *testing.T) {
	var short Config
	long := Config{
		Family: "llama", Attention: sparse.Patterns{sparse.Full{}}, Positions: Positions{"rope"}, RopeLayout: "half",
		Init: "gpt2", ZeroInit: "none",
		Activation: "swiglu", ValueEmbeddings: "none", MuPBaseDim: 256, MuPInputScale: 1,
	}
	if d := short.Differences(long); d != nil {
		t.Errorf("%+v", d)
	}
}

// A shape reads back from JSON, and what an early version saved reads as the same shape.
func TestSavedShapesReadBack(t *testing.T) {
	want := shape()
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Config
	if err := json.Unmarshal(text, &got); err != nil || got.Differences(want) != nil {
		t.Errorf("%v: %+v", err, got.Differences(want))
	}
	early := string(text)
	for now, then := range map[string]string{
		`"RopeScaling":"yarn:4","RopeOriginalContext":8,"RopeLayout":"interleaved"`: `"RopeScaling":{"Kind":"yarn","Factor":4,"Original":8,"Fast":32,"Slow":1,"Attention":0,"Low":0,"High":0},"RopeInterleaved":true`,
		`"MuP":true,"MuPBaseDim":16,"MuPBaseHeadDim":8,"MuPBaseFFN":24,"MuPBaseLayers":2,` +
			`"MuPInputScale":2,"MuPOutputScale":3`: `"MuP":{"Dim":16,"HeadDim":8,"FFN":24,"Layers":2,"InputScale":2,"OutputScale":3}`,
	} {
		if !strings.Contains(early, now) {
			t.Fatalf("%s is not in %s", now, early)
		}
		early = strings.Replace(early, now, then, 1)
	}
	got = Config{}
	if err := json.Unmarshal([]byte(early), &got); err != nil || got.Differences(want) != nil {
		t.Errorf("%v: %+v", err, got.Differences(want))
	}
	got = Config{MuP: true}
	off := `{"Layers":2,"RopeScaling":{"Kind":"","Factor":0,"Original":0},"RopeInterleaved":false,"MuP":{"Dim":0}}`
	err = json.Unmarshal([]byte(off), &got)
	if err != nil || got.MuP || got.Layers != 2 || got.RopeScaling != (nn.RoPEScaling{}) {
		t.Errorf("%v: %+v", err, got)
	}
}
