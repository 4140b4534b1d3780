package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Optimizer is the update rule. What an optimizer does not read stays at its default.
type Optimizer struct {
	Name            string  `yaml:"name"`
	LR              float64 `yaml:"lr"`
	Beta1           float64 `yaml:"beta1"`
	Beta2           float64 `yaml:"beta2"`
	Eps             float64 `yaml:"eps"`
	WeightDecay     float64 `yaml:"weight_decay"`
	CautiousDecay   bool    `yaml:"cautious_decay"`
	DecayEmbeddings bool    `yaml:"decay_embeddings"`
	Groups          Groups  `yaml:"groups"`
}

// Groups are the parameters by role.
type Groups struct {
	Matrix    Group `yaml:"matrix"`
	Embedding Group `yaml:"embedding"`
	Head      Group `yaml:"head"`
	Norm      Group `yaml:"norm"`
	Bias      Group `yaml:"bias"`
}

// Group is how the parameters of one role differ from the rest.
type Group struct {
	LRRatio     float64 `yaml:"lr_ratio"`
	WeightDecay float64 `yaml:"weight_decay"`
}

// derived stands in a number that Resolve fills, where 0 is a value that one may want.
var derived = math.NaN()

// optimizers holds for each optimizer the keys of its section that it reads, with the values that it starts from. A key
// whose default does not depend on the optimizer has the value derived here.
var optimizers = []struct {
	name   string
	values map[string]float64
}{
	{"adamw", map[string]float64{"lr": 1e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "cautious_decay": derived}},
}

// optimizerValues returns what the optimizer of the name reads, or nil if there is none of the name.
func optimizerValues(name string) map[string]float64 {
	for _, o := range optimizers {
		if o.name == name {
			return o.values
		}
	}
	return nil
}

func optimizerNames() []string {
	var names []string
	for _, o := range optimizers {
		names = append(names, o.name)
	}
	return names
}

// optimizerKeys lists, sorted, the keys that not every optimizer reads or that start from different values.
func optimizerKeys() []string {
	var keys []string
	for _, o := range optimizers {
		for key := range o.values {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// optimizerRule says how a key of the section goes by the optimizer's name: "lr = 0.001 for adamw, adam; 0.1 for sgd".
func optimizerRule(key string) string {
	var values []float64
	names := map[float64][]string{}
	for _, o := range optimizers {
		v, reads := o.values[key]
		if !reads || math.IsNaN(v) {
			continue
		}
		if names[v] == nil {
			values = append(values, v)
		}
		names[v] = append(names[v], o.name)
	}
	var parts []string
	for _, v := range values {
		parts = append(parts, number(v)+" for "+strings.Join(names[v], ", "))
	}
	if parts == nil {
		return ""
	}
	return key + " = " + strings.Join(parts, "; ")
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// resolveOptimizer fills the numbers that go by the optimizer's name, and the groups' decay.
func (c *Config) resolveOptimizer() {
	o := &c.Optimizer
	values := optimizerValues(o.Name)
	for _, key := range optimizerKeys() {
		if optimizerRule(key) == "" {
			continue
		}
		v, reads := values[key]
		if reads {
			c.deriveNumber("optimizer."+key, v, key+" of "+o.Name)
		} else {
			c.deriveNumber("optimizer."+key, 0, o.Name+" has none")
		}
	}
	const decay = "weight_decay = optimizer.weight_decay"
	c.deriveNumber("optimizer.groups.matrix.weight_decay", o.WeightDecay, decay)
	c.deriveNumber("optimizer.groups.head.weight_decay", o.WeightDecay, decay)
	if o.DecayEmbeddings {
		c.deriveNumber("optimizer.groups.embedding.weight_decay", o.WeightDecay, decay)
	}
	for _, rest := range []string{"embedding", "norm", "bias"} {
		c.deriveNumber("optimizer.groups."+rest+".weight_decay", 0, "not decayed")
	}
}

// optimizer checks the keys of the section.
func (k *checker) optimizer() {
	o := &k.c.Optimizer
	values := optimizerValues(o.Name)
	if values == nil {
		return // names has said so, and nothing else can be known
	}
	fresh := Default()
	fresh.Optimizer.Name = o.Name
	fresh.Resolve()
	for _, key := range optimizerKeys() {
		name := "optimizer." + key
		at := allKeys[keyIndex[name]]
		if _, reads := values[key]; !reads && k.c.value(at) != fresh.value(at) {
			k.fault(name, "leave it out", "%s = %s, but %s has none", name, k.c.value(at), o.Name)
		}
	}
	k.number("optimizer.lr", o.LR, 0, 1e6, "()")
	k.decay("optimizer", 1, o.WeightDecay)
	for _, n := range []struct {
		key       string
		value     float64
		low, high float64
		brackets  string
	}{
		{"beta1", o.Beta1, 0, 1, "[)"},
		{"beta2", o.Beta2, 0, 1, "[)"},
		{"eps", o.Eps, 0, 1, "()"},
	} {
		if _, reads := values[n.key]; reads {
			k.number("optimizer."+n.key, n.value, n.low, n.high, n.brackets)
		}
	}
	for _, g := range []struct {
		role string
		Group
	}{{"matrix", o.Groups.Matrix}, {"embedding", o.Groups.Embedding}, {"head", o.Groups.Head}, {"norm", o.Groups.Norm}, {"bias", o.Groups.Bias}} {
		name := "optimizer.groups." + g.role
		k.number(name+".lr_ratio", g.LRRatio, 0, 1e6, "[)")
		if k.c.origins[name+".weight_decay"].Rule == "" { // else it is optimizer.weight_decay, or 0
			k.decay(name, g.LRRatio, g.WeightDecay)
		}
	}
}

// decay checks a weight decay that is applied at ratio times the learning rate.
func (k *checker) decay(section string, ratio, decay float64) {
	key, rate := section+".weight_decay", k.c.Optimizer.LR*ratio
	k.number(key, decay, 0, 1e6, "[)")
	if decay > 0 && decay < 1e6 && rate < 1e6 && rate*decay >= 1 {
		k.fault(key, fmt.Sprintf("%s below %s", key, number(1/rate)),
			"%s = %s at the rate %s takes more than the whole weight in one step", key, number(decay), number(rate))
	}
}
