package tasks

// Sample is what a model answered to an item.
type Sample struct {
	Task      string            `json:"task"`
	Item      int               `json:"item"` // its number in its split, from 0
	Doc       map[string]any    `json:"doc"`
	Target    any               `json:"target"`
	Filter    string            `json:"filter"`
	Arguments []Argument        `json:"arguments"`
	Text      *string           `json:"text,omitempty"`     // that the model wrote
	Filtered  *string           `json:"filtered,omitempty"` // what the filter made of it
	Metrics   map[string]Number `json:"metrics"`            // of this item alone: a log-likelihood for perplexities
}

// Argument is a request with its likelihood.
type Argument struct {
	Context      string  `json:"context"`
	Continuation string  `json:"continuation,omitempty"`
	LogProb      *Number `json:"log_likelihood,omitempty"` // in nats
	Greedy       *bool   `json:"greedy,omitempty"`         // each of its tokens is the most likely one
}

func (a *asked) sample(q *question, answers []response, p pipeline, text string, list []measure) Sample {
	s := Sample{
		Task: a.Name, Item: q.number, Doc: q.values, Target: q.wanted, Filter: p.name, Metrics: map[string]Number{},
	}
	for i, r := range q.requests {
		x := Argument{Context: r.context, Continuation: r.continuation}
		if a.Output == Generate {
			s.Text, s.Filtered = &answers[i].text, &text
		} else {
			value := Number(answers[i].LogProb)
			x.LogProb, x.Greedy = &value, &answers[i].Greedy
		}
		s.Arguments = append(s.Arguments, x)
	}
	for i, m := range a.metrics {
		s.Metrics[m.name] = Number(list[i].value)
	}
	return s
}
