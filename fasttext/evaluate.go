package fasttext

import "slices"

// Evaluation is how well the best label of each text meets the right ones.
type Evaluation struct {
	Examples int           `json:"examples"`
	Right    int           `json:"right"`
	Accuracy float64       `json:"accuracy"` // Right of Examples
	Labels   []LabelResult `json:"labels"`
}

// LabelResult is what became of one label.
type LabelResult struct {
	Label     string  `json:"label"`
	Examples  int     `json:"examples"`  // that have it
	Predicted int     `json:"predicted"` // that the model gave it to
	Right     int     `json:"right"`     // that the model gave it to and that have it
	Precision float64 `json:"precision"` // Right of Predicted; 0 of none
	Recall    float64 `json:"recall"`    // Right of Examples; 0 of none
}

// Add counts a text with these labels, for which the model's best is another or one of them; "" is none.
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
	for i := range e.Labels {
		l := &e.Labels[i]
		l.Precision, l.Recall = share(l.Right, l.Predicted), share(l.Right, l.Examples)
	}
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
