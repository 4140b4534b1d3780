package hf

import (
	"slices"
	"strings"
	"testing"
)

// A config whose windows or scaling older versions of transformers read otherwise has a note, and no other has one.
// What they compute was compared with 4.51.3 and 5.24.
func TestNotesOnOlderVersions(t *testing.T) {
	llama := func(window int, windowed []bool, s RopeScaling) LlamaConfig {
		return LlamaConfig{
			Layers: 3, MaxPositions: 8192, QKNorm: true, Window: window, WindowLayers: windowed, RopeScaling: s,
		}
	}
	every := everyNth(3, 2)
	last := []bool{false, true, true}
	yarn := RopeScaling{Type: "yarn", Factor: 4, OriginalPositions: 2048}
	longRope := RopeScaling{
		Type: "longrope", Factor: 4, OriginalPositions: 2048, AttentionFactor: longRopeAttention(4, 2048),
	}
	otherYarn, otherFactor, otherAttention := yarn, longRope, longRope
	otherYarn.Factor, otherAttention.AttentionFactor = 8, 1.5
	otherFactor.Factor, otherFactor.AttentionFactor = 8, longRopeAttention(8, 2048)
	for name, c := range map[string]struct {
		of   LlamaConfig
		want map[string]string // a part of the note by model_type; without one, there must be none
	}{
		"no windows":            {llama(0, nil, RopeScaling{}), nil},
		"windows in all layers": {llama(8, nil, RopeScaling{}), map[string]string{"gemma2": "layer_types"}},
		"in every second":       {llama(8, every, RopeScaling{}), map[string]string{"qwen3": "layer_types"}},
		"in the last layers": {llama(8, last, RopeScaling{}), map[string]string{
			"qwen3": "layer_types", "gemma2": "layer_types", "gemma3_text": "layer_types",
		}},
		"as long as the context": {llama(8192, last, RopeScaling{}), nil},
		"yarn":                   {llama(0, nil, yarn), nil},
		"yarn by more": {llama(0, nil, otherYarn), map[string]string{
			"qwen3": "8", "gemma2": "8", "gemma3_text": "8",
		}},
		"longrope":                        {llama(0, nil, longRope), nil},
		"longrope by more":                {llama(0, nil, otherFactor), map[string]string{"phi3": "version 5"}},
		"longrope with another attention": {llama(0, nil, otherAttention), map[string]string{"phi3": "1.5"}},
	} {
		for _, config := range []Config{
			&c.of, &Gemma2Config{LlamaConfig: c.of}, &Gemma3Config{LlamaConfig: c.of}, &Phi3Config{c.of},
		} {
			kind := config.settings()["model_type"].(string)
			if kind == "phi3" && (c.of.Window > 0 || c.of.RopeScaling.Type == "yarn") {
				continue // it has neither
			}
			notes, want := config.Notes(), c.want[kind]
			if len(notes) > 1 || (len(notes) > 0) != (want != "") || !strings.Contains(strings.Join(notes, ""), want) {
				t.Errorf("%s, %s: %q, want one with %q", name, kind, notes, want)
			}
		}
	}
}

// Settings that transformers 4 reads in other places than 5. Version 4 refuses a Phi-3 whose rope_scaling has another
// number of fields than three, and looks for the original context of longrope beside rope_scaling.
func TestSettingsForOlderVersions(t *testing.T) {
	s := RopeScaling{
		Type: "longrope", Factor: 4, OriginalPositions: 2048, AttentionFactor: longRopeAttention(4, 2048),
		ShortFactor: []float64{1, 1}, LongFactor: []float64{1, 4},
	}
	c := LlamaConfig{Layers: 3, MaxPositions: 8192, QKNorm: true, RopeScaling: s}
	inside := func(m map[string]any) (names []string) {
		for name := range m["rope_scaling"].(map[string]any) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	for _, config := range []Config{&c, &Gemma3Config{LlamaConfig: c}, &Phi3Config{c}} {
		if got := config.settings()["original_max_position_embeddings"]; got != 2048 {
			t.Errorf("%s: original context %v beside rope_scaling", config.Class(), got)
		}
	}
	want := []string{"long_factor", "short_factor", "type"}
	if got := inside((&Phi3Config{c}).settings()); !slices.Equal(got, want) {
		t.Errorf("a Phi-3 has %v", got)
	}
	c.RopeScaling.AttentionFactor = 1.5
	if got := inside((&Phi3Config{c}).settings()); !slices.Contains(got, "attention_factor") {
		t.Errorf("a Phi-3 with a factor of attention has %v", got) // transformers 5 would compute the usual one
	}
	c = LlamaConfig{Layers: 3, MaxPositions: 8192, QKNorm: true}
	if got := (&Gemma2Config{LlamaConfig: c}).settings()["sliding_window"]; got != 8192 {
		t.Errorf("a Gemma 2 without windows has sliding_window = %v", got)
	}
	c.Window, c.WindowLayers = 8, []bool{false, true, true}
	if got := c.settings()["max_window_layers"]; got != 1 {
		t.Errorf("a Qwen with windows from the second layer on has max_window_layers = %v", got)
	}
}
