package train

import "anneal/dataset"

// Answers counts how often the most likely token is the right one, given all right ones before it. Targets that stand
// for text count, but not those of prompts, nor the token that ends a text.
type Answers struct {
	Targets   int64 `json:"targets"`   // that count
	Right     int64 `json:"right"`     // of them, that are the most likely token
	Documents int64 `json:"documents"` // that lie in one row and have targets that count
	Exact     int64 `json:"exact"`     // of them, all of whose targets are right: what greedy decoding would write
	Cut       int64 `json:"cut"`       // documents that rows cut, so that nothing is known of the whole
}

// Accuracy is the share of targets that are right; NaN without one.
func (a Answers) Accuracy() float64 { return float64(a.Right) / float64(a.Targets) }

// ExactMatch is the share of answers that are right as a whole; NaN without one.
func (a Answers) ExactMatch() float64 { return float64(a.Exact) / float64(a.Documents) }

// counts are the numbers of a.
func (a *Answers) counts() []*int64 {
	return []*int64{&a.Targets, &a.Right, &a.Documents, &a.Exact, &a.Cut}
}

// countAnswers counts those of the batch just scored.
func (e *Evaluator) countAnswers(bytes []int32, end uint32) (a Answers) {
	behind := e.batch.HostBehind(e.dev)
	for from := 0; from < len(e.data.Targets); from += e.length {
		to := from + e.length
		a.count(e.data.Tokens[from:to], e.data.Targets[from:to],
			func(i int) bool { return behind.Float64(from+i) == 0 }, bytes, end)
	}
	return a
}

// An answer is what has been seen of a document in a row.
type answer struct {
	begun bool // its first token is in the row
	total int64
	right int64
}

// count counts the answers of a row of tokens: right says of each target whether it is the most likely token, bytes is
// the text of each token, 0 for the one that ends a text.
func (a *Answers) count(tokens []uint32, targets []int32, right func(i int) bool, bytes []int32, end uint32) {
	var doc answer
	for i, target := range targets {
		if tokens[i] == end {
			a.finish(doc, true)
			doc = answer{begun: true}
		}
		if target == dataset.Ignore || bytes[target] == 0 {
			continue
		}
		doc.total++
		if right(i) {
			doc.right++
		}
	}
	n := len(targets) - 1
	ended := targets[n] == int32(end) || targets[n] == dataset.Ignore && doc.total > 0 // the data ends with the row
	if doc.begun && !ended && tokens[n] != end {
		a.Cut++
	}
	a.finish(doc, ended)
}

// finish counts a document of which the row holds the end or not.
func (a *Answers) finish(d answer, ended bool) {
	a.Targets += d.total
	a.Right += d.right
	if d.total > 0 && d.begun && ended {
		a.Documents++
		if d.right == d.total {
			a.Exact++
		}
	}
}
