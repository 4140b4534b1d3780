package run

import (
	"anneal/config"
	"anneal/train"
)

// DRO is group DRO with its reference.
type DRO struct {
	train.GroupDRO
	Reference string // run directory of a model of the same shape and tokenizer
}

// weighDomains opens the reference of group DRO and makes the trainer weigh the sources.
func (s *session) weighDomains() (err error) {
	o := *s.DRO
	if s.reference, err = OpenWeights(o.Reference, WeightOptions{}); err != nil {
		return err
	}
	if err := s.reference.Load(s.dev); err != nil {
		return err
	}
	m := s.reference.Model
	if err := s.trainer.WeighDomains(o.GroupDRO, m, len(s.corpus.Sources)); err != nil {
		return err
	}
	if s.trainer.Model().Config.Differences(m.Config) != nil || s.reference.Config.Precision != s.cfg.Precision {
		return config.Problem{
			Message: "the reference " + o.Reference + " differs from the model to be trained",
			Try:     "the same model and precision for both",
		}
	}
	return nil
}
