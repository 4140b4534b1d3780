package prepare

import (
	"fmt"
	"strings"

	"anneal/config"
	"anneal/dataset"
)

// CheckOrder returns an error if the data set lacks the scores that data.order needs.
func CheckOrder(cfg *config.Config, set *dataset.Dataset) error {
	o, err := cfg.Order()
	if err != nil {
		return err // cannot happen after validation
	}
	for _, scores := range []string{o.First.Scores, o.Last.Scores} {
		if scores == "" {
			continue
		}
		if _, err := set.ReadScores(scores); err != nil {
			return &dataset.Error{Err: err}
		}
	}
	return nil
}

// DescribeOrder describes the effect of data.order in a valid config, for epochs of the given number of rows; "" if
// there is none.
func DescribeOrder(cfg *config.Config, rows uint64) string {
	o, _ := cfg.Order()
	end := map[bool]string{false: "lowest", true: "highest"}
	var parts []string
	if p := o.First; p.Scores != "" {
		parts = append(parts, fmt.Sprintf("the first %d of %d samples come from the rows with the %s %s, "+
			"from %.3g%% of the rows to all of them (%s)",
			min(p.Samples, max(rows, 1)), o.Run, end[p.High], p.Scores, 100*p.Start, p.Pacing))
	}
	if p := o.Last; p.Scores != "" {
		parts = append(parts, fmt.Sprintf("the last %d samples come from the %.3g%% of rows with the %s %s, "+
			"held back from sample %d on", p.Samples, 100*p.Best, end[p.High], p.Scores, p.Since))
	}
	if parts == nil {
		return ""
	}
	return "order: " + strings.Join(parts, "; ")
}
