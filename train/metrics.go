package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
)

// number is a float64 that JSON can hold: null if it is not finite.
type number float64

// MarshalJSON writes null for what JSON has no number for.
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
	ZLoss           *number   `json:"z_loss,omitempty"`             // if there is one
	ClipRate        *number   `json:"clip_rate,omitempty"`          // share of the updates so far that were clipped, if any can be
	SequenceTokens  int       `json:"sequence_tokens,omitempty"`    // where train.length_warmup has shorter ones than the context
	NoiseScale      *number   `json:"noise_scale_tokens,omitempty"` // of steps that measured it
	WinRate         float64   `json:"win_rate,omitempty"`           // share of weights that the update did not clip, with sophia
	Skipped         bool      `json:"skipped,omitempty"`
	LossScale       float64   `json:"loss_scale,omitempty"`     // of precision fp16, for the next step
	DomainWeights   []float64 `json:"domain_weights,omitempty"` // of a run that weighs domains, in the order of its sources
	DomainExcess    []float64 `json:"domain_excess,omitempty"`  // loss of each beyond that of the reference, nats per token
	Rewound         bool      `json:"rewound,omitempty"`        // the run went back before this step; its weights do not have it
	TokensPerSecond number    `json:"tokens_per_second"`
	FractionOfPeak  number    `json:"fraction_of_peak"`
	RSSBytes        int64     `json:"rss_bytes"`
	ValLoss         *number   `json:"val_loss,omitempty"`
	ValBitsPerByte  *number   `json:"val_bits_per_byte,omitempty"`

	SourceLoss        map[string]number `json:"source_loss,omitempty"`              // of each source of a mix in the step's batch
	SourceTokens      map[string]int64  `json:"source_tokens,omitempty"`            // of each, trained on so far, where the model was evaluated
	SourceBitsPerByte map[string]number `json:"source_val_bits_per_byte,omitempty"` // held out, of each

	ValLossEMA        *number `json:"val_loss_ema,omitempty"` // of the average of the weights
	ValBitsPerByteEMA *number `json:"val_bits_per_byte_ema,omitempty"`
}

// metricsFile appends lines to metrics.jsonl. A disk that is full must not end a run that could go on: the first
// failure is reported once, and writing stops.
type metricsFile struct {
	f    *os.File
	warn func(string)
}

// openMetrics opens the file for a run at the given step: lines of later steps, written before a kill by steps that
// will run again, are removed, and so is a last line cut short.
func openMetrics(path string, step int, warn func(string)) (*metricsFile, error) {
	if err := trimMetrics(path, step); err != nil {
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("cannot write metrics: %w", err)
	}
	return &metricsFile{f, warn}, nil
}

func trimMetrics(path string, step int) error {
	data, lines, err := readMetricsLines(path)
	if err != nil {
		return err
	}
	keep := 0
	for _, l := range lines {
		if !l.Rewound && l.Step > step {
			break
		}
		keep = l.end
	}
	if keep == len(data) {
		return nil
	}
	return os.Truncate(path, int64(keep))
}

// loggedStep is a whole line of metrics.jsonl: which step it is of and where in the file it ends.
type loggedStep struct {
	Step    int
	Rewound bool
	end     int
}

// readMetricsLines returns the file and its lines up to the first that is cut short or damaged. No file has no lines.
func readMetricsLines(path string) (data []byte, list []loggedStep, err error) {
	data, err = os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	end := 0
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l loggedStep
		end += len(lines.Bytes()) + 1
		if json.Unmarshal(lines.Bytes(), &l) != nil || end > len(data) {
			break
		}
		l.end = end
		list = append(list, l)
	}
	return data, list, nil
}

// lastLogged returns the last step that metrics.jsonl has of the run as it stands; 0 if it has none.
func lastLogged(path string) (int, error) {
	_, lines, err := readMetricsLines(path)
	last := 0
	for _, l := range lines {
		if !l.Rewound {
			last = max(last, l.Step)
		}
	}
	return last, err
}

// markRewound marks the lines of steps after the given one: history that the run no longer stands on.
func markRewound(path string, step int) error {
	data, lines, err := readMetricsLines(path)
	if err != nil || len(lines) == 0 {
		return err
	}
	var out []byte
	from := 0
	for _, l := range lines {
		line := bytes.TrimRight(data[from:l.end], "\r\n")
		from = l.end
		if l.Step > step && !l.Rewound {
			line = append(line[:len(line)-1:len(line)-1], `,"rewound":true}`...)
		}
		out = append(append(out, line...), '\n')
	}
	return writeDurably(path, out)
}

func (m *metricsFile) write(l metricsLine) {
	if m.f == nil {
		return
	}
	line, err := json.Marshal(l)
	if err == nil {
		_, err = m.f.Write(append(line, '\n'))
	}
	if err != nil {
		m.warn(fmt.Sprintf("metrics are no longer recorded: %v", err))
		m.close()
	}
}

func (m *metricsFile) close() {
	if m.f != nil {
		m.f.Close()
		m.f = nil
	}
}

// A LossCurve is what the steps of a run gave, in order; the two have one length.
type LossCurve struct {
	Tokens []float64 // seen after the step
	Loss   []float64 // nats per token of its batch, before the update
}

// Losses reads the loss of every step that the weights of the run in dir have seen. Steps that were skipped are left out.
func Losses(dir string) (LossCurve, error) {
	var c LossCurve
	f, err := os.Open(runDir(dir).metrics())
	if err != nil {
		return c, fmt.Errorf("cannot read metrics: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l struct {
			Tokens  float64
			Loss    *float64
			Skipped bool
			Rewound bool
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return c, fmt.Errorf("cannot read metrics: %s: %w", runDir(dir).metrics(), err)
		}
		if l.Loss != nil && !l.Skipped && !l.Rewound {
			c.Tokens, c.Loss = append(c.Tokens, l.Tokens), append(c.Loss, *l.Loss)
		}
	}
	return c, lines.Err()
}

// DomainWeights reads the weights of each domain after every step of the run in dir, which weighs them: [step][domain].
func DomainWeights(dir string) ([][]float64, error) {
	f, err := os.Open(runDir(dir).metrics())
	if err != nil {
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	defer f.Close()
	var weights [][]float64
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l struct {
			Weights []float64 `json:"domain_weights"`
			Rewound bool
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("cannot read metrics: %s: %w", runDir(dir).metrics(), err)
		}
		if l.Weights != nil && !l.Rewound {
			weights = append(weights, l.Weights)
		}
	}
	return weights, lines.Err()
}
