package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"

	"anneal/internal/fileio"
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

// openMetrics opens the file for a run at the given step. It removes lines of later steps, written before a kill by
// steps that will run again, and a truncated last line.
func openMetrics(path string, step int, warn func(string)) (*metricsFile, error) {
	if err := trimMetrics(path, step); err != nil {
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	f, err := openAppend(path)
	if err != nil {
		return nil, fmt.Errorf("cannot write metrics: %w", err)
	}
	return newMetricsFile(f, metricsRetry, warn), nil
}

func trimMetrics(path string, step int) error {
	keep, size := int64(0), int64(0)
	err := eachMetricsLine(path, func(line []byte) error {
		l, err := readLoggedStep(line)
		if err != nil || !l.Rewound && l.Step > step {
			return errStopReading
		}
		keep += int64(len(line))
		return nil
	})
	if info, e := os.Stat(path); e == nil {
		size = info.Size()
	}
	if err != nil || keep == size {
		return err
	}
	return os.Truncate(path, keep)
}

// loggedStep is the part of a line of metrics.jsonl that identifies its step.
type loggedStep struct {
	Step    int
	Rewound bool
}

// longestMetricsLine is far longer than the line of a mix of a thousand sources.
const longestMetricsLine = 1 << 20

// errStopReading ends eachMetricsLine early; it is not an error.
var errStopReading = errors.New("stop")

// eachMetricsLine calls f with every line of the file, including its line end, until f returns an error. For a line
// that is too long it passes nil, and stops. A missing file has no lines.
func eachMetricsLine(path string, f func(line []byte) error) error {
	file, err := fileio.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longestMetricsLine)
	lines.Split(func(data []byte, atEOF bool) (advance int, line []byte, err error) {
		n := bytes.IndexByte(data, '\n') + 1
		if n == 0 && atEOF {
			n = len(data) // truncated
		}
		if n == 0 {
			return 0, nil, nil
		}
		return n, data[:n:n], nil
	})
	for lines.Scan() {
		if err := f(lines.Bytes()); err != nil {
			return unlessStopped(err)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return unlessStopped(f(nil))
	}
	return lines.Err()
}

func unlessStopped(err error) error {
	if err == errStopReading {
		return nil
	}
	return err
}

var errCutShort = errors.New("the line is cut short")

// readLoggedStep parses a line. A truncated or damaged line is an error.
func readLoggedStep(line []byte) (l loggedStep, err error) {
	if !bytes.HasSuffix(line, []byte("\n")) {
		return l, errCutShort
	}
	err = json.Unmarshal(line, &l)
	return l, err
}

// lastLogged returns the last step of the run's current history in metrics.jsonl; 0 if there is none.
func lastLogged(path string) (last int, err error) {
	err = eachMetricsLine(path, func(line []byte) error {
		l, err := readLoggedStep(line)
		if err != nil {
			return errStopReading
		}
		if !l.Rewound {
			last = max(last, l.Step)
		}
		return nil
	})
	return last, err
}

// markRewound marks the lines of steps after the given one as rewound. It removes a damaged line and all later lines,
// unless it is the first: such a file does not belong to a run.
func markRewound(path string, step int) error {
	err := fileio.Write(path, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 1<<16)
		lines := 0
		err := eachMetricsLine(path, func(line []byte) error {
			l, err := readLoggedStep(line)
			if err != nil {
				return errStopReading
			}
			lines++
			line = bytes.TrimSpace(line)
			if l.Step > step && !l.Rewound {
				line = append(line[:len(line)-1:len(line)-1], `,"rewound":true}`...)
			}
			out.Write(line)
			return out.WriteByte('\n')
		})
		if err == nil && lines == 0 {
			return errStopReading
		}
		return errors.Join(err, out.Flush())
	})
	return unlessStopped(err)
}

// A LossCurve holds the losses of a run's steps, in order; both slices have the same length.
type LossCurve struct {
	Tokens []float64 // seen after the step
	Loss   []float64 // nats per token of its batch, before the update
}

// Losses reads the loss of every step whose update is part of the weights of the run in dir. Skipped steps are
// omitted.
func Losses(dir string) (LossCurve, error) {
	var c LossCurve
	err := runMetrics(dir, func(line []byte) error {
		var l struct {
			Tokens  float64
			Loss    *float64
			Skipped bool
			Rewound bool
		}
		err := json.Unmarshal(line, &l)
		if err == nil && l.Loss != nil && !l.Skipped && !l.Rewound {
			c.Tokens, c.Loss = append(c.Tokens, l.Tokens), append(c.Loss, *l.Loss)
		}
		return err
	})
	return c, err
}

// runMetrics calls f with every line of a run's metrics.
func runMetrics(dir string, f func(line []byte) error) error {
	path := runDir(dir).metrics()
	_, err := os.Stat(path)
	if err == nil {
		err = eachMetricsLine(path, f)
	}
	if err != nil {
		return fmt.Errorf("cannot read metrics: %s: %w", path, fileio.Cause(err))
	}
	return nil
}

// DomainWeights reads the domain weights after every step of the run in dir, which must weigh domains:
// [step][domain].
func DomainWeights(dir string) ([][]float64, error) {
	var weights [][]float64
	err := runMetrics(dir, func(line []byte) error {
		var l struct {
			Weights []float64 `json:"domain_weights"`
			Rewound bool
		}
		err := json.Unmarshal(line, &l)
		if err == nil && l.Weights != nil && !l.Rewound {
			weights = append(weights, l.Weights)
		}
		return err
	})
	return weights, err
}
