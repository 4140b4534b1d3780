package plan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"anneal/config"
	"anneal/internal/units"
)

// A candidate is a size with everything derived from it.
type candidate struct {
	sheet    // the configuration before Resolve
	resolved *config.Config
	speed    float64 // tokens per second
	steps    int     // 0 if the budget is too small for one
	loss     float64 // bits per byte
	read     float64 // tokens until the run ends
	enough   bool    // it reads all that it should of the text
	memory   int64
}

// The context of short runs; the longer context, and the number of tokens that a run must read for it.
const (
	shortContext, longContext = 256, 512
	longTokens                = 6e6
)

// gainOfSize is the factor of the best loss so far that a larger model must stay below to be chosen. A smaller gain is
// no reason to train a larger model, and with scarce text the law falls for ever by less and less.
const gainOfSize = 0.999

// wholeHead is the number of tokens from which on a whole head is better than half of one, whatever the law says. In
// the same time, 4×64 with 2.1M tokens was 2 and 8 % better than 4×32 with 3.1M, and with 1.1M tokens 2 and 5 % worse
// than 4×32 with 2.2M (docs/budget.md).
const wholeHead = 2e6

// errUnfit means that a size does not fit in memory.
var errUnfit = errors.New("does not fit")

// choose tries widths, half a head and then whole heads, smallest first. It stops when memory ends, a tenth of the
// time is over, or the predicted loss has not fallen for two widths in a row; one alone may have been measured while
// the machine was slow. Half a head is for runs in which a model with a whole head would not learn to copy; it learns
// that only in part. The context is the longer one as long as enough tokens are read.
func (b Budget) choose(cfg *config.Config) (best *candidate, err error) {
	context, worse, end := longContext, 0, time.Now().Add(b.Time/10)
	given := cfg.Origin("model.context") != (config.Origin{})
	if given {
		context = cfg.Model.Context
	}
	for width := headSize / 2; width <= mostWidth; width = width/headSize*headSize + headSize {
		c, err := b.try(cfg, context, width)
		if !given && context == longContext && (err != nil || c.tokens(b) < longTokens) {
			context = shortContext
			c, err = b.try(cfg, context, width)
		}
		pinned := cfg.Origin("model.dim") != (config.Origin{})
		switch {
		case errors.Is(err, errUnfit) && best != nil:
			return best, nil
		case err != nil:
			return nil, err
		case best != nil && best.cfg.Model.Dim < headSize && c.tokens(b) >= wholeHead && c.steps > 0:
			best, worse = c, 0
		case best != nil && !(c.loss < gainOfSize*best.loss):
			worse++
		default:
			best, worse = c, 0
		}
		if pinned || c.steps < 1 || worse == 2 || time.Now().After(end) {
			break
		}
	}
	return best, nil
}

// try completes a copy of cfg for a context and a width. Its threads are ranks, unless memory is too small for all
// ranks.
func (b Budget) try(cfg *config.Config, context, width int) (*candidate, error) {
	c, err := b.complete(cfg, context, width, b.Threads)
	if errors.Is(err, errUnfit) && b.Threads > 1 {
		c, err = b.complete(cfg, context, width, 1)
	}
	return c, err
}

// complete completes a copy of cfg for a context, a width and at most the given number of ranks.
func (b Budget) complete(cfg *config.Config, context, width, ranks int) (*candidate, error) {
	c := &candidate{sheet: sheet{cfg: cfg.Clone()}, loss: math.Inf(1)}
	c.setInt("model.context", context, fmt.Sprintf("%d, from %.1fM tokens on %d", shortContext, longTokens/1e6,
		longContext), labBook)
	c.size(width)
	c.share(ranks, b.Data)
	draft := c.cfg.Clone()
	if draft.Origin("train.batch_tokens") == (config.Origin{}) {
		draft.Train.BatchTokens = c.leastBatch(b.Data)
	}
	draft.Resolve()
	if err := draft.Validate(); err != nil {
		return nil, err
	}
	p, err := b.Plan(draft)
	if err != nil {
		return nil, err
	}
	if !p.Fits {
		return nil, fmt.Errorf("a model of width %d %w: it needs %.1f GB, %.1f GB are available\n"+
			"  choose a smaller model, context or micro-batch", draft.Model.Dim, errUnfit,
			float64(p.Bytes())/1e9, float64(p.Available)/1e9)
	}
	source := ""
	if c.speed, source, err = b.Speed(draft); err != nil {
		return nil, err
	}
	c.resolved = draft
	if c.steps = c.length(b, source); c.steps < 1 {
		return c, nil
	}
	c.rate()
	c.setInt("schedule.warmup", max(min(warmupSteps, c.steps/10), 1), "40 steps, at most a tenth of them",
		"as in the runs of "+labBook)
	c.resolved = c.cfg.Clone()
	c.resolved.Resolve()
	if p, err = b.Plan(c.resolved); err != nil {
		return nil, err
	}
	c.memory = p.Bytes()
	c.read = min(float64(c.resolved.Tokens()), c.limit()*c.speed)
	c.loss = budgetLaw(p.FLOPsPerToken/6, c.read, max(float64(b.Data.Tokens), 1)) * b.Data.level()
	return c, nil
}

// limit returns the seconds after which train.minutes ends the run, if it has not ended by itself.
func (c *candidate) limit() float64 {
	if m := c.resolved.Train.Minutes; m > 0 {
		return 60 * m
	}
	return math.Inf(1)
}

// size derives the shape of the model.
func (s *sheet) size(width int) {
	s.setInt("model.dim", width, "32 or the multiple of 64 with the lowest predicted bits per byte", budgetLawSource)
	dim := s.cfg.Model.Dim
	s.setInt("model.layers", max(leastLayers, (dim+layersPerWidth/2)/layersPerWidth),
		"width / 48, at least 4", "convention, not yet measured")
	heads := max(dim/headSize, 1)
	for dim%heads != 0 {
		heads--
	}
	s.setInt("model.heads", heads, "heads of 64", "convention")
}

// share derives how threads share a step: as ranks with their own sequences, which wait for each other once per step
// instead of once per operation.
func (s *sheet) share(threads int, data Text) {
	batch, context := s.cfg.Train.BatchTokens, max(s.cfg.Model.Context, 1)
	if s.cfg.Origin("train.batch_tokens") == (config.Origin{}) {
		batch = s.leastBatch(data)
	}
	ranks := s.cfg.Parallel.Ranks
	if s.cfg.Origin("parallel.ranks") == (config.Origin{}) {
		ranks = RanksOf(threads, batch/context)
	}
	if ranks == 1 {
		return
	}
	s.setInt("parallel.ranks", ranks, "threads that share the sequences of a step wait for each other once a step: "+
		"1.2 to 1.4 times as fast as two threads in every operation", labBook)
	s.setInt("parallel.zero", 1, "every rank updates its share of the weights", "docs/parallel.md")
	s.setInt("train.micro_batch", MicroOf(ranks, batch/context, context),
		"a micro-batch for every rank, of at most 4,096 tokens", "docs/parallel.md")
}

// leastBatch returns the smallest batch in tokens: about 4,096, or fewer for a run that soon has read all that it
// should of a short text, in whole sequences, and at least one sequence per rank.
func (s *sheet) leastBatch(data Text) int {
	context := max(s.cfg.Model.Context, 1)
	return max(min(budgetBatch, batchFor(data.mostEpochs()*data.all()))/context, s.cfg.Parallel.Ranks, 1) * context
}

// batchFor returns the tokens of a step, a power of two, for the tokens of a run.
func batchFor(tokens float64) int {
	return 1 << int(math.Log2(budgetBatch*math.Pow(tokens/budgetBatchTokens, 0.4))+1e-9)
}

// batch returns the tokens of a step: those that are given, or the least.
func (s *candidate) batch(b Budget) int {
	if s.cfg.Origin("train.batch_tokens") == (config.Origin{}) {
		return s.leastBatch(b.Data)
	}
	return s.cfg.Train.BatchTokens
}

// most returns how many tokens the run should read at most: those that the text is good for, in a few steps at least.
func (s *candidate) most(b Budget) float64 {
	return max(b.Data.mostEpochs()*b.Data.all(), leastSteps*float64(s.batch(b)))
}

// tokens returns how many tokens the run reads: those of its steps if the number of steps is given, else those that
// fit in the budget at the machine's speed, or the most that it should read.
func (s *candidate) tokens(b Budget) float64 {
	if s.cfg.Origin("train.steps") == (config.Origin{}) {
		return min(b.stepSeconds()*s.speed, s.most(b))
	}
	return float64(s.cfg.Train.Steps * s.batch(b))
}

// length derives batch, steps and evaluations from the run's tokens. It returns the steps.
func (s *candidate) length(b Budget, source string) int {
	tokens := s.tokens(b)
	s.enough = s.cfg.Origin("train.steps") == (config.Origin{}) && tokens == s.most(b)
	context := max(s.cfg.Model.Context, 1)
	batch := max(batchFor(tokens)/context*context, s.leastBatch(b.Data))
	s.setInt("train.batch_tokens", batch, "4,096 · (tokens / 6.4M)^0.4, at least 4,096 unless the text is short, down "+
		"to a power of two; at least a sequence for each rank",
		"Bergsma et al. 2025, arXiv 2505.13738, from 4,096 in "+labBook)
	steps := int(tokens / float64(max(s.cfg.Train.BatchTokens, 1)))
	if steps < 1 {
		return 0
	}
	rule := fmt.Sprintf("90 %% of the budget at %s tokens/s", units.Commas(int64(s.speed)))
	if s.enough {
		rule, source = fmt.Sprintf("the text %.1f times, in less than the budget: models that read a short text more "+
			"often got worse", tokens/b.Data.all()), labBook
	}
	s.setInt("train.steps", steps, rule, source)
	s.evaluations(b, tokens)
	return s.cfg.Train.Steps
}

// evaluations derives when and how much a run of so many tokens evaluates.
func (s *candidate) evaluations(b Budget, tokens float64) {
	every, context := max(s.cfg.Train.Steps/evaluations, 1), max(s.cfg.Model.Context, 1)
	s.setInt("train.eval_every", every, "ten evaluations", "convention")
	s.setInt("samples.every", every, "a text with each evaluation", "convention")
	trained := evalShare * tokens // in the time of the evaluations
	if s.enough {
		trained = max(trained, (b.Time.Seconds()*s.speed-tokens)/2)
	}
	s.setInt("train.eval_tokens", max(min(int(evalCost*trained/evaluations), mostEvaluated)/context, 1)*context,
		"evaluations take 5 % of the time, or half of what a short text leaves, at most 65,536 tokens each",
		"a trained token costs three evaluated ones")
}

// rate derives the learning rates of an optimizer that has been tuned for budgets.
func (s *sheet) rate() {
	o := &s.cfg.Optimizer
	tokens := float64(s.cfg.Train.Steps) * float64(s.cfg.Train.BatchTokens)
	rate, rule := Rate(o.Name, s.cfg.Model.Dim, tokens)
	if rate == 0 {
		return
	}
	s.set("optimizer.lr", short(rate), rule, "exponent: Bjorck et al. 2024, arXiv 2409.19913; level: "+labBook)
	if o.Name == "muon" {
		s.set("optimizer.adamw_lr", short(TableRate*o.LR),
			fmt.Sprintf("%g · optimizer.lr, for embeddings, head and norms",
				float64(TableRate)), labBook)
		s.set("optimizer.beta2", short(TableBeta2), "of AdamW for embeddings, head and norms", labBook)
	}
}

// short writes a number with three digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
