package train

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"anneal/internal/nanjson"
)

// An Event holds the figures of a step. It is written as a line of metrics.jsonl and a line of progress, and given to
// readers of a run. The trainer computes the first part; the run adds rates and, if one was made, an evaluation.
// Unknown numbers are NaN. To add a metric, add a field and set it where it is computed.
type Event struct {
	Step   int   `json:"step"`
	Tokens int64 `json:"tokens"` // trained on so far

	// Loss is the mean of nats per target over the whole batch, before the update; GradNorm is the global norm of the
	// gradient of that mean, before clipping. Both are NaN if the batch has no target.
	Loss     float64 `json:"loss"`
	LR       float64 `json:"lr"`
	GradNorm float64 `json:"grad_norm"`

	// every train.norms_every steps: the norm of the gradient of the mean loss, before clipping, and the norm of the
	// update divided by that of the weights
	GradNorms    LayerFigures `json:"grad_norms,omitempty"`
	UpdateRatios LayerFigures `json:"update_ratios,omitempty"`

	ZLoss         float64 `json:"z_loss,omitempty"`         // mean of train.z_loss · log²Z; Loss excludes it
	TeacherKL     float64 `json:"teacher_kl,omitempty"`     // mean divergence from distill.teacher, in nats per target
	RouterBalance float64 `json:"router_balance,omitempty"` // mean over routed tokens, without model.router_aux_loss
	// mean log²Z of the routers, without model.router_z_loss
	RouterZLoss    float64 `json:"router_z_loss,omitempty"`
	ClipRate       float64 `json:"clip_rate,omitempty"`          // share of the updates so far, if clipping is on
	ClipRateRecent float64 `json:"clip_rate_recent,omitempty"`   // of the last 64 updates
	SequenceTokens int     `json:"sequence_tokens,omitempty"`    // if shorter than the context
	NoiseScale     float64 `json:"noise_scale_tokens,omitempty"` // estimate from the steps so far that measured it
	WinRate        float64 `json:"win_rate,omitempty"`           // share of weights not clipped by sophia

	// Skipped reports that the update was not applied: the guard refused it, an fp16 gradient overflowed, or every
	// target was ignored.
	Skipped   bool    `json:"skipped,omitempty"`
	LossScale float64 `json:"loss_scale,omitempty"` // of precision fp16, for the next step

	// For a run that weighs domains, by source: the domain weights, and by how much each domain's loss exceeds the
	// reference's, in nats per token.
	DomainWeights []float64 `json:"domain_weights,omitempty"`
	DomainExcess  []float64 `json:"domain_excess,omitempty"`

	// Rewound reports that the run went back to before this step, so its weights no longer include the update.
	Rewound bool `json:"rewound,omitempty"`

	// SaveSeconds is how long training waited for a checkpoint, before the step and before its update.
	SaveSeconds float64 `json:"save_seconds,omitempty"`

	TokensPerSecond float64 `json:"tokens_per_second"` // of wall time, over the last few seconds
	FractionOfPeak  float64 `json:"fraction_of_peak"`  // of the measured peak of matrix products at the run's precision
	RSSBytes        int64   `json:"rss_bytes"`

	StepSeconds float64 `json:"step_seconds,omitempty"` // of wall time, without evaluations
	FLOPs       float64 `json:"flops,omitempty"`        // counted by model.Decoder.BatchFLOPs, with the teacher's forward
	// PhaseSeconds are the mean seconds per phase of a step since the last report, which is every train.log_every
	// steps.
	PhaseSeconds map[string]Number `json:"phase_seconds,omitempty"`

	SourceLoss map[string]Number `json:"source_loss,omitempty"` // per source of a mix, of the step's batch
	Evaluation                   // of the model after the step, if one was made

	// The fields below are read only by the process that makes the step.
	Steps   int           `json:"-"` // of the whole run
	ETA     time.Duration `json:"-"`
	Skips   int           `json:"-"` // updates not applied so far
	Clipped bool          `json:"-"` // the gradient exceeded train.clip
	Targets int           `json:"-"` // of the batch that are not ignored
	Rise    *Rise         `json:"-"` // a layer whose gradient has grown and stays large
}

// An Evaluation holds measurements on held-out text, NaN if none were made. Losses are nats per token.
type Evaluation struct {
	ValLoss           float64 `json:"val_loss,omitempty"`
	ValBitsPerByte    float64 `json:"val_bits_per_byte,omitempty"`
	ValLossEMA        float64 `json:"val_loss_ema,omitempty"` // of the average of the weights
	ValBitsPerByteEMA float64 `json:"val_bits_per_byte_ema,omitempty"`

	// with train.eval_answers: the share of tokens, and of whole documents, that are right; see Answers
	ValAccuracy   float64 `json:"val_accuracy,omitempty"`
	ValExact      float64 `json:"val_exact,omitempty"`
	TrainAccuracy float64 `json:"train_accuracy,omitempty"` // of the training split
	TrainExact    float64 `json:"train_exact,omitempty"`

	Tasks map[string]map[string]Number `json:"tasks,omitempty"` // with eval.tasks: figures by task and metric

	// root mean square of the residual stream after the embedding and after each layer, of the first held-out batch
	ActivationRMS []Number `json:"activation_rms,omitempty"`

	ValSources        []SourceResult    `json:"-"`                                  // per source of a mix
	SourceTokens      map[string]int64  `json:"source_tokens,omitempty"`            // per source, trained on so far
	SourceBitsPerByte map[string]Number `json:"source_val_bits_per_byte,omitempty"` // per source, held out
}

// NewEvent returns an event in which all numbers are unknown.
func NewEvent() (e Event) {
	nanjson.Forget(&e)
	return e
}

// Evaluated reports whether the event has an evaluation.
func (e *Evaluation) Evaluated() bool { return !math.IsNaN(e.ValLoss) }

// MarshalJSON implements json.Marshaler.
func (e Event) MarshalJSON() ([]byte, error) { return nanjson.Marshal(e) }

// UnmarshalJSON implements json.Unmarshaler.
func (e *Event) UnmarshalJSON(text []byte) error {
	type plain Event
	read := plain(NewEvent())
	err := json.Unmarshal(text, &read)
	*e = Event(read)
	return err
}

// stepEvent begins the event of a step with the figures that do not depend on whether the update is applied.
func (t *Trainer) stepEvent(part Portion, sums batchSums) Event {
	e := NewEvent()
	e.Steps, e.LR, e.FLOPs, e.Targets = t.cfg.Train.Steps, 0, sums.flops, sums.targets
	if part.Length < t.model.Config.Context {
		e.SequenceTokens = part.Length
	}
	return e
}

// endEvent adds the position of the run after the step.
func (t *Trainer) endEvent(e *Event) {
	e.Step, e.Tokens, e.Skips = t.progress.Step, t.progress.Tokens, t.guard.Skipped
	if t.policy.Scaled() {
		e.LossScale = t.lossScale.Scale
	}
	if t.cfg.Train.Clip > 0 {
		e.ClipRate, e.ClipRateRecent = t.progress.ClipRate(), t.progress.ClipRateRecent()
	}
	if t.robust != nil {
		e.DomainWeights, e.DomainExcess = slices.Clone(t.robust.state.Alpha), slices.Clone(t.robust.state.Excess)
	}
}
