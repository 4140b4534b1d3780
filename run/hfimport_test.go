package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
)

// What transformers runs and this program does not is refused before any weight is read, and leaves nothing.
func TestImportRefusesWhatWouldNotRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "hf", "testdata", "yarn", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string][2]string{
		"rope_scaling: the factor": {`"factor": 4.0`, `"factor": 0.5`},
		"model.rope_theta = 0.5":   {`"rope_theta": 100.0`, `"rope_theta": 0.5`},
		"model.context":            {`"max_position_embeddings": 32`, `"max_position_embeddings": 2000000000`},
		"hidden_act = gelu":        {`"hidden_act": "silu"`, `"hidden_act": "gelu"`},
	} {
		dir, run := t.TempDir(), filepath.Join(t.TempDir(), "run")
		changed := strings.Replace(string(text), change[0], change[1], 1)
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ImportHF(dir, run, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %q", change[1], err, want)
		}
		var of config.Problem
		if errors.As(err, &of) {
			t.Errorf("%s: %v is told as a problem of a config file, which there is none of", change[1], err)
		}
		if _, err := os.Stat(run); err == nil {
			t.Errorf("%s: the run was made", change[1])
		}
	}
}

// The base of windows is read and ignored in a Gemma 3 that has no windows.
func TestImportTakesAGemma3WithoutWindows(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "hf", "testdata", "gemma3", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	full := strings.ReplaceAll(string(text), `"sliding_attention",`, `"full_attention",`)
	full = strings.ReplaceAll(full, `"sliding_attention"`+"\n", `"full_attention"`+"\n")
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(full), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := configOf(dir)
	if err != nil || c.Model.Attention.String() != "full" || c.Model.RopeTheta != 100 {
		t.Errorf("config %+v, %v", c, err)
	}
}
