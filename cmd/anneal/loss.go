package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"anneal/corpus"
)

// lossFlags set the share of unusable input that a command tolerates. The policy is corpus.MaxLoss.
type lossFlags struct {
	MaxRejects percent `default:"0.1%" placeholder:"SHARE" help:"Largest share of documents or bytes that may be unusable. Above it, or if a file is damaged or cut off, the command finishes its work and ends with exit code 3."`
	Strict     bool    `help:"End with exit code 3 if even one document cannot be used."`
}

func (f lossFlags) limit() corpus.MaxLoss {
	if f.Strict {
		return 0
	}
	return corpus.MaxLoss(f.MaxRejects)
}

// next returns the command to type next, or "" if too much of the input was lost; the error then says what to do.
func (f lossFlags) next(input corpus.Report, command string) string {
	if f.limit().Check(input) != nil {
		return ""
	}
	return command
}

// percent is a share on the command line, such as 0.1%.
type percent float64

func (p *percent) UnmarshalText(text []byte) error {
	number, unit := strings.CutSuffix(string(text), "%")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !unit && x != 0 || !(x >= 0 && x <= 100) {
		return fmt.Errorf("%q is not a share; try 0.1%%", text)
	}
	*p = percent(x / 100)
	return nil
}

// incomplete is the error of a command that finished its work, but lost too much of its input.
type incomplete struct {
	loss   *corpus.LossError
	marked string         // the file that lists the loss, if any
	again  string         // how to repeat the work once the files are repaired
	result map[string]any // printed by --json
}

func (e *incomplete) Error() string {
	s := e.loss.Error() + "\n  everything that could be read was used"
	if e.marked != "" {
		s += "; " + e.marked + ` lists the losses under "lost"`
	}
	if e.loss.FileCount > 0 {
		return s + "\n  repair or remove the files, then " + e.again
	}
	return s + "\n  repair the input, or allow more with --max-rejects; then " + e.again
}

// finish ends a command that reads text: it prints result for --json, or, if too much of the input was lost, returns
// an error that contains the result. The file marked lists the losses.
func (s *session) finish(f lossFlags, input corpus.Report, marked, again string, result map[string]any) error {
	if loss := new(corpus.LossError); errors.As(f.limit().Check(input), &loss) {
		return &incomplete{loss, marked, again, result}
	}
	return s.emit(result)
}
