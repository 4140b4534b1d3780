package train

import (
	"encoding/json"
	"math"
	"strconv"
)

// number is a float64 in JSON, null if it is not finite.
type number float64

// MarshalJSON writes null for non-finite numbers.
func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// UnmarshalJSON reads null back as NaN.
func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// metricsLine is one line of metrics.jsonl. Losses are nats per token, rates per second of wall time.
type metricsLine struct {
	Step            int       `json:"step"`
	Tokens          int64     `json:"tokens"`
	Loss            number    `json:"loss"`
	LR              float64   `json:"lr"`
	GradNorm        number    `json:"grad_norm"`
	ZLoss           *number   `json:"z_loss,omitempty"`             // if train.z_loss is set
	ClipRate        *number   `json:"clip_rate,omitempty"`          // share of the updates so far that were clipped, if clipping is on
	SequenceTokens  int       `json:"sequence_tokens,omitempty"`    // if train.length_warmup makes sequences shorter than the context
	NoiseScale      *number   `json:"noise_scale_tokens,omitempty"` // of steps that measured it
	WinRate         float64   `json:"win_rate,omitempty"`           // share of weights that the update did not clip, with sophia
	Skipped         bool      `json:"skipped,omitempty"`
	LossScale       float64   `json:"loss_scale,omitempty"`     // of precision fp16, for the next step
	DomainWeights   []float64 `json:"domain_weights,omitempty"` // by source, for a run that weighs domains
	DomainExcess    []float64 `json:"domain_excess,omitempty"`  // excess of each domain's loss over the reference's, nats per token
	Rewound         bool      `json:"rewound,omitempty"`        // the run went back before this step, which its weights no longer include
	TokensPerSecond number    `json:"tokens_per_second"`
	FractionOfPeak  number    `json:"fraction_of_peak"`
	RSSBytes        int64     `json:"rss_bytes"`
	ValLoss         *number   `json:"val_loss,omitempty"`
	ValBitsPerByte  *number   `json:"val_bits_per_byte,omitempty"`

	SourceLoss        map[string]number `json:"source_loss,omitempty"`              // per source of a mix, of the step's batch
	SourceTokens      map[string]int64  `json:"source_tokens,omitempty"`            // per source, trained on so far; in lines with an evaluation
	SourceBitsPerByte map[string]number `json:"source_val_bits_per_byte,omitempty"` // per source, held out

	ValLossEMA        *number `json:"val_loss_ema,omitempty"` // of the average of the weights
	ValBitsPerByteEMA *number `json:"val_bits_per_byte_ema,omitempty"`
}
