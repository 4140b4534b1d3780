package train

import (
	"testing"
)

// MUP-2: with the base model's own sizes muP is the standard parametrisation, bit for bit, weights and optimizer
// state.
func TestMuPOfTheBaseModelChangesNoBit(t *testing.T) {
	for _, name := range optimizers(t) {
		var own []string
		switch name {
		case "adafactor", "schedulefree", "soap", "sophia":
			continue // refused
		case "muon":
			own = []string{"optimizer.muon_scale=spectral_mup"}
		}
		for _, more := range [][]string{
			nil, {"model.qk_norm=true", "model.tie_embeddings=false"}, {"model.init=small", "model.zero_init=residual"},
		} {
			own := append(own, more...)
			plain, src := optimizerTrainer(t, name, own...)
			mup, _ := optimizerTrainer(t, name,
				append([]string{"model.mup=true", "model.mup_base_dim=64", "model.mup_base_layers=2"}, own...)...)
			steps(t, plain, src, 5)
			steps(t, mup, src, 5)
			if got, want := hashes(mup), hashes(plain); got != want {
				t.Errorf("%s %v: after 5 steps hashes are %v with muP, %v without", name, more, got, want)
			}
		}
	}
}
