package train

import "anneal/dataset"

// Answers counts how often the most likely token is right, given all right tokens before it. Targets that stand for
// text count; targets in prompts and the token that ends a text do not.
type Answers struct {
	Targets   int64 `json:"targets"`   // targets that count
	Right     int64 `json:"right"`     // targets that are the most likely token
	Documents int64 `json:"documents"` // documents that lie within one row and have targets that count
	Exact     int64 `json:"exact"`     // documents whose targets are all right: greedy decoding would write them
	Cut       int64 `json:"cut"`       // documents cut by the end of a row: their result is unknown
}

// Accuracy is the share of targets that are right; NaN if there are none.
func (a Answers) Accuracy() float64 { return float64(a.Right) / float64(a.Targets) }

// ExactMatch is the share of documents whose targets are all right; NaN if there are none.
func (a Answers) ExactMatch() float64 { return float64(a.Exact) / float64(a.Documents) }

// counts returns pointers to the fields of a.
func (a *Answers) counts() []*int64 {
	return []*int64{&a.Targets, &a.Right, &a.Documents, &a.Exact, &a.Cut}
}

// countAnswers counts the answers of the batch just scored.
func (e *Evaluator) countAnswers(bytes []int32, end uint32) (a Answers) {
	behind := e.batch.HostBehind(e.dev)
	for from := 0; from < len(e.data.Targets); from += e.length {
		to := from + e.length
		a.count(e.data.Tokens[from:to], e.data.Targets[from:to],
			func(i int) bool { return behind.Float64(from+i) == 0 }, bytes, end)
	}
	return a
}

// An answer counts the targets of a document within a row.
type answer struct {
	begun bool // its first token is in the row
	total int64
	right int64
}

// count counts the answers of a row of tokens. right reports whether a target is the most likely token. bytes is the
// length of each token's text, 0 for the token that ends a text.
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

// finish counts a document; ended says whether the row holds its end.
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
