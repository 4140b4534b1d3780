package fasttext

import "slices"

// Evaluation compares the best label of each text with its true labels.
type Evaluation struct {
	Examples int           `json:"examples"`
	Right    int           `json:"right"`
	Accuracy float64       `json:"accuracy"` // Right / Examples
	Labels   []LabelResult `json:"labels"`
}

// LabelResult holds the counts of one label.
type LabelResult struct {
	Label     string  `json:"label"`
	Examples  int     `json:"examples"`  // texts that have the label
	Predicted int     `json:"predicted"` // texts for which the model chose it
	Right     int     `json:"right"`     // texts for which the model chose it and that have it
	Precision float64 `json:"precision"` // Right / Predicted; 0 if none
	Recall    float64 `json:"recall"`    // Right / Examples; 0 if none
}

// Add counts a text with the labels truth, for which the model chose best. An empty best means that the model chose
// none.
func (e *Evaluation) Add(truth []string, best string) {
	e.Examples++
	for _, name := range truth {
		e.label(name).Examples++
	}
	if best != "" {
		e.label(best).Predicted++
	}
	if slices.Contains(truth, best) {
		e.Right++
		e.label(best).Right++
	}
	e.Accuracy = share(e.Right, e.Examples)
	for _, name := range truth {
		e.label(name).divide()
	}
	if best != "" {
		e.label(best).divide()
	}
}

// divide computes the shares.
func (l *LabelResult) divide() {
	l.Precision, l.Recall = share(l.Right, l.Predicted), share(l.Right, l.Examples)
}

func (e *Evaluation) label(name string) *LabelResult {
	i := slices.IndexFunc(e.Labels, func(l LabelResult) bool { return l.Label == name })
	if i < 0 {
		i = len(e.Labels)
		e.Labels = append(e.Labels, LabelResult{Label: name})
	}
	return &e.Labels[i]
}

func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
