package lab

import (
	"fmt"
	"strings"

	"anneal/dataset"
	"anneal/train"
	"anneal/train/config"
)

// checkOrder fails unless the data set has the scores that data.order goes by.
func checkOrder(cfg *config.Config, set *dataset.Dataset) error {
	o, err := cfg.Order()
	if err != nil {
		return err // validation has passed it already
	}
	for _, scores := range []string{o.First.Scores, o.Last.Scores} {
		if scores == "" {
			continue
		}
		if _, err := set.ReadScores(scores); err != nil {
			return &train.DataError{Err: err}
		}
	}
	return nil
}

// describeOrder says what data.order of a valid config makes of a run whose epochs have so many rows; "" for nothing.
func describeOrder(cfg *config.Config, rows uint64) string {
	o, _ := cfg.Order()
	end := map[bool]string{false: "lowest", true: "highest"}
	var parts []string
	if p := o.First; p.Scores != "" {
		parts = append(parts, fmt.Sprintf("the first %d of %d samples come from the rows with the %s %s, from %.3g%% of the rows to all of them (%s)",
			min(p.Samples, max(rows, 1)), o.Run, end[p.High], p.Scores, 100*p.Start, p.Pacing))
	}
	if p := o.Last; p.Scores != "" {
		parts = append(parts, fmt.Sprintf("the last %d samples come from the %.3g%% of rows with the %s %s, held back from sample %d on", p.Samples, 100*p.Best, end[p.High], p.Scores, p.Since))
	}
	if parts == nil {
		return ""
	}
	return "order: " + strings.Join(parts, "; ")
}
