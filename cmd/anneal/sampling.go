package main

import "anneal/model"

// samplingFlags set how the next token is sampled.
type samplingFlags struct {
	Temperature float64 `default:"0.8" help:"0: always the most likely token; 1: sample as the model predicts."`
	TopK        count   `help:"Sample among this many most likely tokens; 0: no limit."`
	TopP        float64 `default:"0.95" help:"Sample among the most likely tokens with this total probability; 0: only the most likely one; 1: no limit."`
	MinP        float64 `placeholder:"SHARE" help:"Leave out tokens with less than this share of the most likely one's probability."`
	Seed        uint64  `default:"1" help:"Seed. The same seed gives the same text."`

	RepetitionPenalty float64 `default:"1" help:"Divide logits of tokens in the text by this; multiply negative ones; 0.01 to 100."`
	FrequencyPenalty  float64 `placeholder:"X" help:"Lower the logit of a token by this for each time that the model wrote it; -100 to 100."`
	PresencePenalty   float64 `placeholder:"X" help:"Lower the logit of a token by this if the model wrote it; -100 to 100."`
}

func (f samplingFlags) sampling() (model.Sampling, error) {
	return model.Sampling{
		Temperature: f.Temperature, TopK: int(f.TopK), TopP: f.TopP, MinP: f.MinP, Seed: f.Seed,
		Repetition: f.RepetitionPenalty, Frequency: f.FrequencyPenalty, Presence: f.PresencePenalty,
	}.Given()
}
