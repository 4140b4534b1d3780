package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Optimizer configures the update rule. Keys that an optimizer does not read stay at their defaults.
type Optimizer struct {
	Name            string   `yaml:"name"`
	LR              float64  `yaml:"lr"`
	Momentum        float64  `yaml:"momentum"`
	Dampening       float64  `yaml:"dampening"`
	Nesterov        bool     `yaml:"nesterov"`
	Beta1           float64  `yaml:"beta1"`
	Beta2           float64  `yaml:"beta2"`
	Beta3           float64  `yaml:"beta3"`
	Alpha           float64  `yaml:"alpha"`
	Ramp            int      `yaml:"ramp"`
	Eps             float64  `yaml:"eps"`
	Variant         string   `yaml:"variant"`
	RelativeStep    bool     `yaml:"relative_step"`
	ScaleParameter  bool     `yaml:"scale_parameter"`
	MuonScale       string   `yaml:"muon_scale"`
	NewtonSchulz    string   `yaml:"newton_schulz"`
	NewtonSchulzIn  string   `yaml:"newton_schulz_operands"`
	NorMuon         bool     `yaml:"normuon"`
	AdamWLR         float64  `yaml:"adamw_lr"`
	Rho             float64  `yaml:"rho"`
	HessianEvery    int      `yaml:"hessian_every"`
	BasisEvery      int      `yaml:"basis_every"`
	Moments         string   `yaml:"moments"`
	Masters         string   `yaml:"masters"`
	WeightDecay     float64  `yaml:"weight_decay"`
	DecayTimescale  float64  `yaml:"decay_timescale"`
	CautiousDecay   bool     `yaml:"cautious_decay"`
	DecayEmbeddings bool     `yaml:"decay_embeddings"`
	Groups          Groups   `yaml:"groups"`
	Patterns        Patterns `yaml:"patterns"`
}

// Groups configures parameters by role.
type Groups struct {
	Matrix    Group `yaml:"matrix"`
	Embedding Group `yaml:"embedding"`
	Head      Group `yaml:"head"`
	Norm      Group `yaml:"norm"`
	Bias      Group `yaml:"bias"`
}

// Group holds the settings in which the parameters of one role differ from the rest.
type Group struct {
	LRRatio     float64 `yaml:"lr_ratio"`
	WeightDecay float64 `yaml:"weight_decay"`
}

// derived marks a number that Resolve fills in, for keys where 0 is a valid value.
var derived = math.NaN()

// optimizers holds, for each optimizer, the keys of its section that it reads, with their defaults. A key whose
// default does not depend on the optimizer has the value derived here. A name of two words is a variant of an
// optimizer.
var optimizers = []struct {
	name   string
	values map[string]float64
}{
	{"adamw", map[string]float64{"lr": 1e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8,
		"cautious_decay": derived, "moments": derived, "masters": derived}},
	{"adam8bit", map[string]float64{"lr": 1e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8,
		"cautious_decay": derived}},
	{"adam", map[string]float64{"lr": 1e-3, "weight_decay": 0, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8,
		"moments": derived, "masters": derived}},
	{"sgd", map[string]float64{"lr": 0.1, "weight_decay": 0, "momentum": 0, "dampening": 0, "nesterov": derived}},
	{"lion", map[string]float64{"lr": 2e-4, "weight_decay": 0.5, "beta1": 0.95, "beta2": 0.98,
		"cautious_decay": derived}},
	{"ademamix", map[string]float64{
		"lr": 1e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.999, "beta3": 0.9999, "alpha": 5, "ramp": derived,
		"eps": 1e-8, "cautious_decay": derived,
	}},
	{"adafactor", map[string]float64{
		"lr": 1e-2, "weight_decay": 0, "beta1": 0, "variant": derived, "relative_step": derived,
		"scale_parameter": derived, "cautious_decay": derived,
	}},
	{"adafactor palm", map[string]float64{
		"lr": 1e-2, "weight_decay": 1, "beta1": 0.9, "variant": derived, "relative_step": derived,
		"scale_parameter": derived, "cautious_decay": derived,
	}},
	{"muon", muonValues(1e-3, 0.1)},
	{"muon jordan", muonValues(0.02, 0.005)},
	{"muon spectral_mup", muonValues(0.02, 0.005)},
	{"soap", map[string]float64{
		"lr": 3e-3, "weight_decay": 0.1, "beta1": 0.95, "beta2": 0.95, "eps": 1e-8, "basis_every": derived,
		"cautious_decay": derived,
	}},
	{"schedulefree", map[string]float64{"lr": 2.5e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8}},
	{"sophia", map[string]float64{
		"lr": 6e-4, "weight_decay": 0.2, "beta1": 0.965, "beta2": 0.99, "rho": 0.04, "hessian_every": derived,
		"cautious_decay": derived,
	}},
}

// values returns the keys that the optimizer reads, or nil if no optimizer has its name.
func (o *Optimizer) values() map[string]float64 {
	for _, name := range []string{o.Name + " " + o.Variant, o.Name + " " + o.MuonScale, o.Name} {
		for _, known := range optimizers {
			if known.name == name {
				return known.values
			}
		}
	}
	return nil
}

func optimizerNames() []string {
	var names []string
	for _, o := range optimizers {
		if !strings.Contains(o.name, " ") {
			names = append(names, o.name)
		}
	}
	return names
}

// optimizerKeys lists, sorted, the keys that not every optimizer reads or whose defaults differ.
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

// optimizerRule describes how the default of a key of the section depends on the optimizer's name: "lr = 0.001 for
// adamw, adam; 0.1 for sgd".
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
		name, variant, has := strings.Cut(o.name, " ")
		if has {
			name += map[string]string{"adafactor": " with variant = ", "muon": " with muon_scale = "}[name] + variant
		}
		names[v] = append(names[v], name)
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

// resolveOptimizer fills in the numbers that depend on the optimizer's name, and the groups' decay.
func (c *Config) resolveOptimizer() {
	o := &c.Optimizer
	values := o.values()
	c.resolveTimescale()
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
	if o.Name == "ademamix" {
		c.derive("optimizer.ramp", c.Train.Steps)
	}
	c.resolveMuon()
	c.deriveNumber("optimizer.groups.matrix.weight_decay", o.WeightDecay, decayRule)
	c.deriveNumber("optimizer.groups.head.weight_decay", o.WeightDecay, decayRule)
	if o.DecayEmbeddings {
		c.deriveNumber("optimizer.groups.embedding.weight_decay", o.WeightDecay, decayRule)
	}
	for _, rest := range []string{"embedding", "norm", "bias"} {
		c.deriveNumber("optimizer.groups."+rest+".weight_decay", 0, noDecayRule)
	}
}

const (
	decayRule   = "weight_decay = optimizer.weight_decay"
	noDecayRule = "not decayed"
)

// followDecay resets the decays that a file marks as derived if optimizer.weight_decay, optimizer.decay_embeddings or
// what a time scale gives was edited in it, so that they follow its new value. If the marked decays of groups differ
// from each other, they were edited themselves, and stay.
func (c *Config) followDecay() {
	o, g := &c.Optimizer, &c.Optimizer.Groups
	const embedding = "optimizer.groups.embedding.weight_decay"
	var marked []string
	var values []float64
	for _, group := range []struct {
		key   string
		decay float64
	}{
		{"optimizer.groups.matrix.weight_decay", g.Matrix.WeightDecay}, {embedding, g.Embedding.WeightDecay},
		{"optimizer.groups.head.weight_decay", g.Head.WeightDecay},
	} {
		if c.origins[group.key].Rule == decayRule {
			marked, values = append(marked, group.key), append(values, group.decay)
		}
	}
	from, given := c.origins["optimizer.weight_decay"]
	own := given && len(slices.Compact(values)) == 1 && values[0] != o.WeightDecay
	switch edited := c.editedTimescale(); {
	case edited != "" && !own:
		c.follow(edited, append([]string{"optimizer.weight_decay"}, marked...))
		return
	case edited != "":
		from.Rule = "" // the time scale gives it no longer
		c.origins["optimizer.weight_decay"] = from
	}
	if own {
		c.follow("optimizer.weight_decay", marked)
	}
	_, given = c.origins["optimizer.decay_embeddings"]
	rule := c.origins[embedding].Rule
	if given && (rule == decayRule && !o.DecayEmbeddings ||
		rule == noDecayRule && o.DecayEmbeddings && g.Embedding.WeightDecay == 0) {
		c.follow("optimizer.decay_embeddings", []string{embedding})
	}
}

// follow resets keys of a file, which then follow another, and remarks on it.
func (c *Config) follow(edited string, keys []string) {
	for _, key := range keys {
		c.leaveOut(allKeys[keyIndex[key]])
	}
	c.Remark(fmt.Sprintf("%s was edited, and what is marked as derived from it follows: %s\n"+
		"  a value without the comment \"derived\" stays", edited, strings.Join(keys, ", ")))
}

// resolveTimescale derives the weight decay from the time over which it forgets. AdamW's weights are an exponential
// average of their updates over 1/(lr·decay) steps (Wang & Aitchison 2024, arXiv 2405.13698), which is best a fixed
// share of the run, whatever its length or the model's size.
func (c *Config) resolveTimescale() {
	o := &c.Optimizer
	rate := o.LR
	if v, reads := o.values()["lr"]; reads && math.IsNaN(rate) {
		rate = v
	}
	if steps := o.DecayTimescale * float64(c.Train.Steps); steps > 0 && rate > 0 {
		c.deriveNumber("optimizer.weight_decay", 1/(rate*steps),
			timescaleRule+fmt.Sprintf(timescaleFrom, number(rate), number(o.DecayTimescale)))
	}
}

// The rule of a decay by its time scale, and the values that it was derived from, by which an edit of them in a file
// shows.
const (
	timescaleRule = "weight_decay = 1 / (lr · decay_timescale · steps)"
	timescaleFrom = " with lr = %s, decay_timescale = %s"
)

// editedTimescale returns which key of a file's timescaleRule was edited, or "".
func (c *Config) editedTimescale() string {
	from, ok := strings.CutPrefix(c.origins["optimizer.weight_decay"].Rule, timescaleRule)
	switch then := fmt.Sprintf(timescaleFrom, number(c.Optimizer.LR), number(c.Optimizer.DecayTimescale)); {
	case !ok || from == "" || from == then:
		return ""
	case strings.HasSuffix(from, fmt.Sprintf("decay_timescale = %s", number(c.Optimizer.DecayTimescale))):
		return "optimizer.lr"
	}
	return "optimizer.decay_timescale"
}

// optimizer checks the keys of the section.
func (k *checker) optimizer() {
	o := &k.c.Optimizer
	values := o.values()
	if values == nil {
		return // names has reported it, and nothing else can be checked
	}
	fresh := Default()
	fresh.Optimizer.Name = o.Name
	if _, reads := values["variant"]; reads {
		fresh.Optimizer.Variant = o.Variant
	}
	if _, reads := values["muon_scale"]; reads {
		fresh.Optimizer.MuonScale = o.MuonScale
	}
	fresh.Resolve()
	for _, key := range optimizerKeys() {
		name := "optimizer." + key
		at := allKeys[keyIndex[name]]
		if _, reads := values[key]; !reads && k.c.value(at) != fresh.value(at) {
			k.fault(name, "removing "+name, "%s = %s has no effect with optimizer.name = %s", name,
				k.c.value(at), o.Name)
		}
	}
	k.number("optimizer.lr", o.LR, 0, 1e6, "()")
	k.number("optimizer.weight_decay", o.WeightDecay, 0, 1e6, "[)")
	k.decay("optimizer.weight_decay", o.LR, o.WeightDecay)
	k.timescale()
	for _, n := range []struct {
		key       string
		value     float64
		low, high float64
		brackets  string
	}{
		{"momentum", o.Momentum, 0, 1, "[)"},
		{"dampening", o.Dampening, 0, 1, "[)"},
		{"beta3", o.Beta3, 0, 1, "[)"},
		{"alpha", o.Alpha, 0, 1e6, "[)"},
		{"beta1", o.Beta1, 0, 1, "[)"},
		{"beta2", o.Beta2, 0, 1, "[)"},
		{"eps", o.Eps, 0, 1, "()"},
		{"adamw_lr", o.AdamWLR, 0, 1e6, "()"},
		{"rho", o.Rho, 0, 1e6, "()"},
	} {
		if _, reads := values[n.key]; reads {
			k.number("optimizer."+n.key, n.value, n.low, n.high, n.brackets)
		}
	}
	if o.Name == "ademamix" {
		k.between("optimizer.ramp", o.Ramp, 1, 1<<40)
	}
	if o.Name == "sophia" {
		k.between("optimizer.hessian_every", o.HessianEvery, 1, 1<<40)
	}
	k.moments()
	k.masters()
	if o.Name == "soap" {
		k.between("optimizer.basis_every", o.BasisEvery, 1, 1<<40)
	}
	k.muon()
	if o.Nesterov && o.Name == "sgd" && o.Momentum == 0 {
		k.fault("optimizer.nesterov", "optimizer.momentum = 0.9", "optimizer.nesterov needs a momentum")
	}
	if o.Nesterov && o.Dampening > 0 {
		k.fault("optimizer.dampening", "optimizer.dampening = 0",
			"optimizer.dampening = %s cannot be combined with optimizer.nesterov", number(o.Dampening))
	}
	for _, g := range []struct {
		role string
		Group
	}{
		{"matrix", o.Groups.Matrix}, {"embedding", o.Groups.Embedding}, {"head", o.Groups.Head},
		{"norm", o.Groups.Norm}, {"bias", o.Groups.Bias},
	} {
		name := "optimizer.groups." + g.role
		k.number(name+".lr_ratio", g.LRRatio, 0, 1e6, "[)")
		k.groupDecay(name, g.Group, o.Name == "muon" && g.role != "matrix")
	}
}

// FirstMomentum is the initial momentum of a momentum warmup (Jordan et al. 2024, the Muon of modded-nanogpt).
const FirstMomentum = 0.85

// timescale checks the keys that decide the weight decay and its course.
func (k *checker) timescale() {
	const key, warm = "optimizer.decay_timescale", "schedule.momentum_warmup"
	o, s := &k.c.Optimizer, &k.c.Schedule
	k.number(key, o.DecayTimescale, 0, 1e6, "[)")
	if o.DecayTimescale > 0 && !strings.HasPrefix(k.c.origins["optimizer.weight_decay"].Rule, timescaleRule) {
		k.fault(key, "one of both", "%s and optimizer.weight_decay both decide the weight decay", key)
	}
	if o.DecayTimescale > 0 && (o.Name == "sgd" || o.Name == "adam") {
		k.fault(key, "optimizer.name = adamw",
			"%s has no meaning with optimizer.name = %s, which adds the decay to the gradient", key, o.Name)
	}
	if o.DecayTimescale > 0 && o.Name == "adafactor" && o.Variant == "palm" {
		k.fault(key, "optimizer.variant = t5, or optimizer.weight_decay",
			"%s does not work with optimizer.variant = palm, which decays by the square of its rate", key)
	}
	switch k.between(warm, s.MomentumWarmup, 0, 1<<40); {
	case s.MomentumWarmup <= 0:
	case o.Name != "muon" && o.Name != "sgd":
		k.fault(warm, "removing "+warm, "%s = %d has no effect without optimizer.momentum: optimizer.name = %s", warm,
			s.MomentumWarmup, o.Name)
	case o.Momentum <= FirstMomentum:
		k.fault(warm, "optimizer.momentum = 0.95, or removing "+warm,
			"%s = %d has no effect: it begins at %s, and optimizer.momentum = %s is not above", warm, s.MomentumWarmup,
			number(FirstMomentum), number(o.Momentum))
	}
}

// groupDecay checks the weight decay of a group; adamw says that Muon leaves it to AdamW.
func (k *checker) groupDecay(group string, g Group, adamw bool) {
	o, key := &k.c.Optimizer, group+".weight_decay"
	if k.c.origins[key].Rule != "" { // derived as optimizer.weight_decay or 0; if it is too large, the cause is a rate
		switch key = group + ".lr_ratio"; {
		case k.reported("optimizer.weight_decay"):
			return
		case adamw && g.LRRatio == 1:
			key = "optimizer.adamw_lr"
		}
	} else {
		k.number(key, g.WeightDecay, 0, 1e6, "[)")
	}
	rate := o.LR * g.LRRatio
	if adamw {
		rate = o.AdamWLR * g.LRRatio
	}
	k.decay(key, rate, g.WeightDecay)
}

// decay checks a weight decay that is applied at a rate; key decides one of both.
func (k *checker) decay(key string, rate, decay float64) {
	if rate < 1e6 && decay < 1e6 && !k.reported(key) && rate*decay >= 1 {
		k.fault(key, fmt.Sprintf("a decay below %s, or a rate below %s", number(1/rate), number(1/decay)),
			"%s: a weight decay of %s at the rate %s removes more than the whole weight in one step", key,
			number(decay), number(rate))
	}
}
