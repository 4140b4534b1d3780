package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"anneal/config"
)

// A Budget is the wall-clock time for a run, with what is known of its data and of the machine.
type Budget struct {
	Time    time.Duration
	Data    Text
	Threads int // that compute

	// Speed returns how fast a valid, resolved configuration trains, and the source of that figure.
	Speed func(*config.Config) (tokensPerSecond float64, source string, err error)
	// Plan returns the memory of such a configuration. For is one on an open device.
	Plan func(*config.Config) (*Plan, error)
}

// Text is a data set to train on.
type Text struct {
	Tokens int64 // of the training split; of a mixture, those of one text that is repeated as often
	All    int64 // of all sources of a mixture; 0: Tokens
	Bytes  int64 // bytes of text of those tokens
	Vocab  int
}

// mostEpochs is how often the steps that a budget derives read the text at most. Small models that read a short text
// more often get worse on other text: for 140,000, 560,000 and 2.5M tokens, two, four and eight times were the best of
// those tried (docs/budget.md). Beyond some 16 times repeated tokens teach next to nothing whatever their number
// (Muennighoff et al. 2023, arXiv 2305.16264).
func (t Text) mostEpochs() float64 { return min(max(4*math.Sqrt(t.all()/560e3), 2), 16) }

// all returns the tokens of the text, at least one.
func (t Text) all() float64 { return float64(max(cmp.Or(t.All, t.Tokens), 1)) }

// Budgeted holds what was derived from a budget.
type Budgeted struct {
	Derived   []Derived `json:"derived"`
	Predicted Predicted `json:"predicted"`

	// The text, and not the time, decides the number of steps.
	ReadsEnough bool    `json:"-"`
	MostSteps   int     `json:"-"` // up to which a run for the budget may grow
	MostEpochs  float64 `json:"-"` // how often the text should be read at most
}

// Derives reports whether the value of a key was derived from the budget. b may be nil.
func (b *Budgeted) Derives(key string) bool {
	return b != nil && slices.ContainsFunc(b.Derived, func(d Derived) bool { return d.Key == key })
}

// Apply sets the derived keys in another copy of the configuration as it was read.
func (b *Budgeted) Apply(cfg *config.Config) {
	s := &sheet{cfg: cfg}
	for _, d := range b.Derived {
		s.set(d.Key, d.Value, d.Rule, d.Source)
	}
}

// Derived is a key whose value was derived from a budget.
type Derived struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Rule   string `json:"rule"`
	Source string `json:"source"` // source of the rule or its numbers
}

// Predicted holds the expected result of the run.
type Predicted struct {
	BitsPerByte float64 `json:"bits_per_byte"` // of held-out text, by a provisional law
	Seconds     float64 `json:"seconds"`       // of steps and evaluations
	MemoryBytes int64   `json:"memory_bytes"`
	Epochs      float64 `json:"epochs"` // how often the text is read
}

// Quality describes how well the model is expected to predict held-out text.
func (p Predicted) Quality() string {
	if p.BitsPerByte > 8 { // a byte has no more
		return "no better than chance: there is too little text or time"
	}
	return fmt.Sprintf("%.2f bits per byte (provisional)", p.BitsPerByte)
}

// ErrBudget means that nothing can be trained in the budget.
var ErrBudget = errors.New("the budget is too small")

const (
	budgetSteps = 0.9 // share of the time for steps; the rest is for evaluation and saving

	headSize       = 64
	layersPerWidth = 48 // width per layer
	leastLayers    = 4
	mostWidth      = 4096

	budgetBatch       = 4096  // tokens of a step
	budgetMicro       = 4096  // the most tokens in a micro-batch
	budgetBatchTokens = 6.4e6 // up to so many tokens of training
	warmupSteps       = 40
	evaluations       = 10
	evalShare         = 0.05 // of the time is evaluation
	mostEvaluated     = 65536
	leastSteps        = 10 // however short the text
	evalCost          = 3  // evaluated tokens that cost as much as one trained token
)

// Derive sets the keys of cfg that were not given to the best values for the time: first the recipe, then the size
// with the lowest predicted loss, then the values that depend on the number of tokens that it can read. cfg is as it
// was read, before Resolve.
func (b Budget) Derive(cfg *config.Config) (*Budgeted, error) {
	recipe := b.recipe(cfg)
	best, err := b.choose(cfg)
	if err != nil {
		return nil, err
	}
	if best.steps < 1 {
		return nil, fmt.Errorf("%w for one step: %s train %.0f tokens at %.0f tokens/s, a step has %d\n"+
			"  give more time, such as --budget %s", ErrBudget, b.Time, b.stepSeconds()*best.speed, best.speed,
			best.resolved.Train.BatchTokens, b.enough(best))
	}
	*cfg = *best.cfg
	r := &Budgeted{Derived: append(recipe, best.derived...)}
	r.Predicted = Predicted{best.loss, b.seconds(best), best.memory,
		best.read / max(float64(b.Data.Tokens), 1)}
	r.ReadsEnough, r.MostEpochs = best.enough, b.Data.mostEpochs()
	r.MostSteps = int(best.most(b) / float64(best.resolved.Train.BatchTokens))
	return r, nil
}

// stepSeconds returns the part of the budget for steps.
func (b Budget) stepSeconds() float64 { return budgetSteps * b.Time.Seconds() }

// enough returns a budget, in whole seconds, that is long enough for ten steps.
func (b Budget) enough(c *candidate) time.Duration {
	step := float64(c.resolved.Train.BatchTokens) / c.speed
	return time.Duration(math.Ceil(10*step/budgetSteps)) * time.Second
}

// seconds predicts the time of steps and evaluations.
func (b Budget) seconds(c *candidate) float64 {
	t := c.resolved.Train
	tokens := float64(t.Steps * t.BatchTokens)
	if every := t.EvalEvery; every > 0 {
		tokens += float64((t.Steps+every-1)/every*t.EvalTokens) / evalCost
	}
	return min(tokens/c.speed, c.limit())
}

// A sheet is a configuration being filled in, with the list of derived keys.
type sheet struct {
	cfg     *config.Config
	derived []Derived
}

// set derives a key, unless it was given or derived before.
func (s *sheet) set(key, value, rule, source string) {
	if s.cfg.Origin(key) != (config.Origin{}) {
		return
	}
	s.cfg.DeriveText(key, value, rule+" ("+source+")")
	s.derived = append(s.derived, Derived{key, value, rule, source})
}

func (s *sheet) setInt(key string, n int, rule, source string) {
	s.set(key, strconv.Itoa(n), rule, source)
}

const labBook = "docs/budget.md"

// recipe derives the keys that do not depend on the size.
func (b Budget) recipe(cfg *config.Config) []Derived {
	s := &sheet{cfg: cfg}
	s.set("model.family", "anneal", "1.481 bits/byte where llama with AdamW and cosine had 1.824 in the same time; "+
		"llama for a model to export", labBook)
	s.set("optimizer.name", "muon", "goes with family anneal", labBook)
	s.set("schedule.name", "wsd", "1.481 bits/byte where linear had 1.506", labBook)
	limit, rule := b.Time.Minutes(), "the budget is the limit"
	if cfg.Schedule.Name == "wsd" {
		limit, rule = 1.1*limit, "the budget and a tenth of it: the number of steps follows the clock until the "+
			"decay begins"
	}
	s.set("train.minutes", strconv.FormatFloat(limit, 'g', 6, 64), rule, "--budget")
	s.set("schedule.decay_fraction", "0.4", "the last two fifths of the steps", labBook)
	s.set("data.packing", "concat", "uses every token of the data once an epoch", "docs/data.md")
	s.setInt("model.vocab", b.Data.Vocab, "the tokenizer of the data set", "its manifest")
	return s.derived
}
