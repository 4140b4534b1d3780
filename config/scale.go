package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"anneal/attention"
	"anneal/model"
)

// maxSmallLR is the highest rate that scaling down derives; small models gain nothing from higher rates.
const maxSmallLR = 3e-3

// prepare sets the values of a recipe, scaled down if requested.
func (c *Config) prepare(s Sources) error {
	if s.Recipe == "" {
		if s.Scale != 0 && s.Scale != 1 {
			return Problem{
				Message: fmt.Sprintf("--scale %v needs a recipe, whose model it makes smaller", s.Scale),
				Try:     "--recipe " + Recipes()[0],
			}
		}
		return nil
	}
	if err := c.readRecipe(s.Recipe); err != nil {
		return err
	}
	switch {
	case s.Scale == 0 || s.Scale == 1:
		return nil
	case !(s.Scale > 1 && s.Scale <= 1e9):
		return Problem{
			Message: fmt.Sprintf("--scale %v is not a number from 1 to 1e9", s.Scale),
			Try:     "--scale 1000 for a thousandth of the parameters",
		}
	}
	c.scaleDown(s.Scale)
	return nil
}

// scaleDown makes the model of a recipe a given number of times smaller, by parameters of blocks, and the run with it:
//
//	depth and width   ÷ scale^(1/3), so that depth : width, ffn : width and heads : kv_heads stay; heads keep about
//	                  their size while there are four of them
//	context, windows  as the width
//	tokens            ÷ scale: as many for each parameter
//	batch, steps      ÷ √scale each
//	learning rate     × how much narrower the model is, as muP has it, but at most maxSmallLR
func (c *Config) scaleDown(scale float64) {
	recipe := c.Clone()
	recipe.Resolve()
	tokens := float64(recipe.Tokens())
	was := recipe.Model
	narrower := c.scaleShape(&was, scale)
	c.scaled = true

	context := max(roundTo(float64(was.Context)/narrower, 64), 64)
	c.rescale("model.context", context, "as the width")
	c.scaleWindows(float64(context) / float64(was.Context))
	batch := float64(recipe.Train.BatchTokens) / math.Sqrt(scale)
	unit := context * max(min(microBatchTokens, int(batch))/context, 1) // a whole micro-batch
	c.rescale("train.batch_tokens", max(roundTo(batch, unit), unit), fmt.Sprintf("÷ √%g", scale))
	c.scaleLengths(scale, context)
	rate, how := recipe.Optimizer.LR, fmt.Sprintf("the same: small models gain nothing from more than %g", maxSmallLR)
	if rate < maxSmallLR {
		rate = min(rate*narrower, maxSmallLR)
		how = fmt.Sprintf("× %.3g, how much narrower the model is; at most %g", narrower, maxSmallLR)
	}
	c.rescale("optimizer.lr", rate, how)
	ramp, _ := c.BatchRamp() // of a recipe: it is valid
	c.rescale("train.steps", max(ramp.Steps(int(tokens/scale)), 1),
		fmt.Sprintf("%.3g tokens ÷ %g, as many for each parameter", tokens, scale))
	if warmup := recipe.Schedule.Warmup; c.amounts["schedule.warmup"] == (amount{}) {
		c.rescale("schedule.warmup", min(max(int(float64(warmup)/math.Sqrt(scale)), 1), c.Train.Steps),
			fmt.Sprintf("%d ÷ √%g", warmup, scale))
	}
}

// scaleShape sets depth, width, heads and the feed-forward layer, and returns the factor by which the model became
// narrower.
func (c *Config) scaleShape(was *model.Config, scale float64) float64 {
	layers := max(int(math.Round(float64(was.Layers)/math.Cbrt(scale))), 1)
	dim := float64(was.Dim) * math.Sqrt(float64(was.Layers)/float64(layers)/scale)
	group := was.Heads / was.KVHeads
	heads := (max(int(math.Ceil(dim/float64(was.HeadDim))), 4) + group - 1) / group * group
	size := max(roundTo(dim/float64(heads), 8), 8)
	width := heads * size
	narrower := float64(was.Dim) / float64(width)
	c.rescale("model.layers", layers, fmt.Sprintf("%d ÷ %g^(1/3)", was.Layers, scale))
	c.rescale("model.dim", width, fmt.Sprintf("%d ÷ %.3g", was.Dim, narrower))
	c.rescale("model.heads", heads, fmt.Sprintf("%d of about %d elements", was.Heads, was.HeadDim))
	c.rescale("model.kv_heads", heads/group, fmt.Sprintf("one for %d queries", group))
	c.rescale("model.head_dim", size, fmt.Sprintf("width / heads, at most %d", was.HeadDim))
	c.rescale("model.ffn", max(roundTo(float64(was.FFN)/narrower, 16), 16),
		fmt.Sprintf("%.3g of the width", float64(was.FFN)/float64(was.Dim)))
	return narrower
}

// scaleWindows shortens the windows of attention.
func (c *Config) scaleWindows(ratio float64) {
	patterns := slices.Clone(c.Model.Attention)
	for i, p := range patterns {
		if w, ok := p.(attention.Window); ok {
			patterns[i] = attention.Window{Keys: max(roundTo(float64(w.Keys)*ratio, 8), 8)}
		}
	}
	if patterns.String() != c.Model.Attention.String() {
		c.rescale("model.attention", patterns, "as the context")
	}
}

// scaleLengths shortens lengths that are given in tokens, and drops a ramp that would no longer grow.
func (c *Config) scaleLengths(scale float64, context int) {
	for name, a := range maps.Clone(c.amounts) {
		if a.unit == "tokens" {
			c.rescale(name, fmt.Sprintf("%.0f tokens", max(a.value/scale, 1)), fmt.Sprintf("%s ÷ %g", a.text, scale))
		}
	}
	ramp, _ := c.BatchRamp()
	var stages []string
	for _, s := range ramp.Stages {
		from, word := max(roundTo(float64(s.From)/math.Sqrt(scale), context), context), "until"
		if s.To != s.From {
			word = "over"
		}
		if until := int(float64(s.Until) / scale); from < c.Train.BatchTokens && until >= from {
			stages = append(stages, fmt.Sprintf("%d %s %d tokens", from, word, until))
		}
	}
	if ramp.Stages == nil {
		return
	}
	c.rescale("train.batch_ramp", strings.Join(stages, ", "), fmt.Sprintf("sizes ÷ √%g, tokens ÷ %g", scale, scale))
	if stages == nil {
		c.leaveOut(allKeys[keyIndex["train.batch_ramp"]])
		c.leaveOut(allKeys[keyIndex["train.batch_ramp_lr"]])
	}
}

// rescale replaces a value of the recipe.
func (c *Config) rescale(name string, value any, how string) {
	text := fmt.Sprint(value)
	if x, ok := value.(float64); ok {
		text = strconv.FormatFloat(x, 'g', 4, 64)
	}
	from := c.origins[name] // keeps the place
	from.Recipe, from.Rule, from.Source = c.recipe, "", "scaled down, "+how
	if err := c.set(allKeys[keyIndex[name]], text, from); err != nil {
		panic("config: " + err.Error())
	}
}

// dataVocabulary leaves the vocabulary of a scaled recipe to the tokenizer of the data, if there is data.
func (c *Config) dataVocabulary() {
	const key = "model.vocab"
	if c.scaled && c.HasData() && c.origins[key].Recipe != "" {
		c.leaveOut(allKeys[keyIndex[key]])
	}
}

// roundTo returns the multiple of unit nearest to x.
func roundTo(x float64, unit int) int { return int(math.Round(x/float64(unit))) * unit }
