package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/hf"
	"anneal/internal/nanjson"
	"anneal/model"
	"anneal/precision"
	"anneal/tokenizer"
	"anneal/train"
)

// state is the part of a checkpoint besides tensors. Together with the tensors, the configuration and the data it
// determines the rest of the run.
type state struct {
	Progress train.Position `json:"progress"`
	Data     dataset.State  `json:"data"`
	Guard    train.Guard    `json:"guard"`

	LossScale precision.LossScale `json:"loss_scale"`
	Domains   *train.DomainState  `json:"domains,omitempty"` // for a run that weighs domains
	Groups    []train.State       `json:"groups,omitempty"`  // of groups that step separately, except the first

	Model model.Config `json:"model"` // the model that the weights were trained in
	Tier  string       `json:"tier"`  // of the kernels; another tier gives other bits

	Tokenizer string         `json:"tokenizer"`      // hash of the tokenizer
	Config    *config.Config `json:"config"`         // of the last training; nil if the checkpoint holds only weights
	Past      []stretch      `json:"past,omitempty"` // the steps before those of Config; ascending

	Imported     bool       `json:"imported,omitempty"`       // the weights come from a model made by other tools
	Special      *hf.Tokens `json:"special_tokens,omitempty"` // of that model; nil in runs of an early version
	ChatTemplate any        `json:"chat_template,omitempty"`  // of that model, as from hf.ChatTemplate

	// Last results, which a finished run reports again.
	TrainLoss        float64              `json:"train_loss"`
	train.Evaluation                      // the last
	ValSources       []train.SourceResult `json:"val_sources,omitempty"` // its ValSources

	EvalStep int  `json:"eval_step"`     // of the last evaluation
	Due      bool `json:"due,omitempty"` // the run was stopped before everything due after the step was done
}

// newState returns the state of a run before its first step.
func newState() (s state) {
	nanjson.Forget(&s)
	return s
}

// MarshalJSON implements json.Marshaler.
func (s state) MarshalJSON() ([]byte, error) { return nanjson.Marshal(s) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *state) UnmarshalJSON(text []byte) error {
	type plain state
	read := plain(newState())
	err := json.Unmarshal(text, &read)
	*s = state(read)
	return err
}

// Check refuses impossible states: counters that are negative, contradict each other, or differ from the manifest's.
func (s *state) Check(step, tokens int64) error {
	p := s.Progress
	switch {
	case int64(p.Step) != step || p.Tokens != tokens:
		return fmt.Errorf("it is at step %d with %d tokens, but the manifest says %d and %d",
			p.Step, p.Tokens, step, tokens)
	case p.Updates < 0 || p.Updates > p.Step || p.Clipped < 0 || p.Clipped > p.Updates ||
		bits.Len64(p.Recent) > p.Updates || bits.OnesCount64(p.Recent) > p.Clipped:
		return fmt.Errorf("after %d steps, %d applied and %d clipped updates are impossible",
			p.Step, p.Updates, p.Clipped)
	case p.Applied < 0 || p.Applied > p.Tokens:
		return fmt.Errorf("after %d tokens, %d applied tokens are impossible", p.Tokens, p.Applied)
	case p.Sample > uint64(p.Tokens):
		return fmt.Errorf("%d tokens cannot hold %d samples", p.Tokens, p.Sample)
	case s.Data.Data != "" && s.Data.Sample != p.Sample:
		return fmt.Errorf("its data is at sample %d, but its progress at sample %d", s.Data.Sample, p.Sample)
	case s.EvalStep < 0 || s.EvalStep > p.Step:
		return fmt.Errorf("it is at step %d, but claims an evaluation at step %d", p.Step, s.EvalStep)
	case s.Guard.Row < 0 || s.Guard.Skipped < s.Guard.Row || s.Guard.Skipped > p.Step ||
		s.Guard.RowFirst < 0 || s.Guard.RowFirst > max(p.Step-s.Guard.Row+1, 0):
		return fmt.Errorf("after %d steps, %d skipped steps, %d of them in a row since step %d, are impossible",
			p.Step, s.Guard.Skipped, s.Guard.Row, s.Guard.RowFirst)
	}
	if err := s.checkPast(); err != nil {
		return err
	}
	for k, g := range s.Groups {
		if g.Position.Step != p.Step || g.Position.Sample != p.Sample {
			return fmt.Errorf("it is at step %d, but its group %d at step %d", p.Step, k+1, g.Position.Step)
		}
	}
	return nil
}

// checkModel rejects a model that would compute differently with the weights than the model they were trained in.
func (s *state) checkModel(now model.Config, dir runDir) error {
	if now.Vocab == 0 { // it follows from the tokenizer, which checkTokenizer compares
		now.Vocab = s.Model.Vocab
	}
	for _, d := range now.Differences(s.Model) {
		if !d.Free {
			return config.Problem{
				Key: d.Key, Message: fmt.Sprintf("%s = %s, but the weights were trained with %s", d.Key, d.Now, d.Was),
				At: dir.config(), Try: fmt.Sprintf("%s = %s, or start a new run", d.Key, d.Was),
			}
		}
	}
	return nil
}

// refuseWeights returns an error for a directory that holds only weights: an import, or an average of checkpoints.
func refuseWeights(d runDir) error {
	var last state
	if _, err := checkpoint.LoadState(d.checkpoints(), &last); err != nil || last.Config != nil {
		return nil // without a readable checkpoint, loading reports the error
	}
	return config.Problem{
		Message: fmt.Sprintf("%s holds only weights: it cannot be resumed", d), At: d.config(),
		Try: fmt.Sprintf("`anneal train CONFIG --init-from %s --out RUN`, which starts a run from them", d.word()),
	}
}

// checkTokenizer returns an error unless the weights were trained with this tokenizer.
func (s *state) checkTokenizer(tok *tokenizer.Tokenizer, dir runDir) error {
	if now := tok.Hash(); now != s.Tokenizer {
		return &dataset.Error{Err: fmt.Errorf("%s has the hash %.12s…, but the weights were trained with the "+
			"tokenizer %.12s…\n  restore the original tokenizer", dir.tokenizer(), now, s.Tokenizer)}
	}
	return nil
}

// asConfigError names the key of the model's configuration that does not fit the weights.
func asConfigError(err error, now model.Config, dir runDir) error {
	if !errors.Is(err, checkpoint.ErrOtherModel) {
		return err
	}
	var last state
	if _, err := checkpoint.LoadState(dir.checkpoints(), &last); err == nil {
		if err := last.checkModel(now, dir); err != nil {
			return err
		}
	}
	return config.Problem{Message: err.Error(), At: dir.config(), Try: "restoring its values, or start a new run"}
}
