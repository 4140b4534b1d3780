package train

import (
	"strings"
	"testing"

	"anneal/config"
	"anneal/device/cpu"
	"anneal/model"
	"anneal/nn"
	"anneal/tensor"
	"anneal/train/traintest"
)

// OPT-7: every parameter of a two-layer model, by hand, in the group where decoupled decay works or in the one where
// not.
func TestEveryParameterIsInItsDecayGroup(t *testing.T) {
	layer := map[string]bool{
		"attention_norm": false, "attention.qkv": true, "attention.out": true, "attention.q_norm": false,
		"attention.k_norm": false, "mlp_norm": false, "mlp.gate_up": true, "mlp.down": true,
	}
	for _, embeddings := range []bool{true, false} {
		for _, tied := range []bool{true, false} {
			want := map[string]bool{"embed": embeddings, "norm": false}
			if !tied {
				want["head"] = true // a matrix product like any other
			}
			for name, decays := range layer {
				want["layers.0."+name], want["layers.1."+name] = decays, decays
			}
			cfg := config.Default()
			cfg.Model.Layers, cfg.Model.Vocab, cfg.Model.QKNorm, cfg.Model.TieEmbeddings,
				cfg.Optimizer.DecayEmbeddings = 2, 50, true, tied, embeddings
			cfg.Resolve()
			state := tensor.NewMeasure("optimizer state")
			m := model.New(cfg.Model, model.Memory{Params: tensor.NewMeasure("parameters"), DType: tensor.F32})
			for i, q := range m.Params() {
				p := layoutUpdated(cfg.Optimizer, NewOptimizer(cfg.Optimizer), state, q, i)
				decays, known := want[p.Name]
				if !known {
					t.Errorf("%s is not in the list, or twice in the model", p.Name)
				}
				delete(want, p.Name)
				wantDecay := 0.0
				if decays {
					wantDecay = cfg.Optimizer.WeightDecay
				}
				if got := p.decay; got != wantDecay {
					t.Errorf("decay_embeddings %v, tied %v: %s decays by %v, want %v",
						embeddings, tied, p.Name, got, wantDecay)
				}
			}
			for name := range want {
				t.Errorf("tied %v: the model has no %s", tied, name)
			}
		}
	}
}

// A group's rate and decay are those of its role alone, times the parameter's own factors.
func TestGroupsGoByRole(t *testing.T) {
	roles := []nn.Role{nn.Matrix, nn.Embedding, nn.Head, nn.Norm, nn.Bias}
	for i, role := range roles {
		cfg, err := config.Load("", []string{"data.path=x", "optimizer.weight_decay=0.5", "model.tie_embeddings=false"})
		if err != nil {
			t.Fatal(err)
		}
		g := &cfg.Optimizer.Groups
		*[]*config.Group{&g.Matrix, &g.Embedding, &g.Head, &g.Norm, &g.Bias}[i] = config.Group{LRRatio: 0.25,
			WeightDecay: 0.75}
		var params []*nn.Param
		for _, r := range roles {
			p := &nn.Param{Role: r, LRScale: 3, DecayScale: 2}
			p.Value = *tensor.Of([]float32{1})
			params = append(params, p)
		}
		for j, q := range params {
			p := layoutUpdated(cfg.Optimizer, NewOptimizer(cfg.Optimizer), tensor.NewMeasure("state"), q, j)
			lr, decay := 3.0, map[nn.Role]float64{nn.Matrix: 1, nn.Embedding: 1, nn.Head: 1}[p.Role]
			if i == j {
				lr, decay = 0.75, 1.5
			}
			if p.lr != lr || p.decay != decay {
				t.Errorf("group %v set: %v has the rate × %v and the decay %v, want × %v and %v",
					role, p.Role, p.lr, p.decay, lr, decay)
			}
		}
	}
}

// Sizes far beyond any machine, alone or multiplied until they overflow, are errors before anything is laid out.
func TestAbsurdSizesAreErrors(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"sequences in a micro-batch": func(c *config.Config) { c.Train.MicroBatch, c.Train.BatchTokens = 1<<30, 1<<35 },
		"widths": func(c *config.Config) {
			c.Model.Layers, c.Model.Dim, c.Model.Heads, c.Model.HeadDim, c.Model.FFN = 1<<12, 1<<18, 1<<12, 1<<14, 1<<20
			c.Model.KVHeads = 1 << 12
			c.Train.MicroBatch, c.Train.BatchTokens = 1<<18, 1<<23
		},
		"vocabulary": func(c *config.Config) { c.Model.Vocab, c.Model.Dim = 1<<24, 1<<18 },
	} {
		cfg := traintest.Config("none")
		cfg.Model.Vocab = 320
		change(cfg)
		if err := cfg.Validate(); err != nil {
			t.Fatalf("%s: the configuration is refused before memory is: %v", name, err)
		}
		dev, err := cpu.New(1)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(cfg, dev)
		dev.Close()
		if err == nil || !strings.Contains(err.Error(), "try") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
