package plan

import (
	"anneal/config"
	"anneal/prepare"
)

// Documents holds the positions at which documents begin in some rows of a run's data; attention skips keys in other
// documents. Nil means that each row is one document.
type Documents [][]int32

// sampledRows are enough for the mean to be within a few percent.
const sampledRows = 64

// documentsOf reads some rows of a run's data; nil without data, or if documents may see each other.
func documentsOf(cfg *config.Config) (Documents, error) {
	if !cfg.Data.DocumentMask || withoutData(cfg) != "" {
		return nil, nil
	}
	return prepare.DocumentStarts(cfg, sampledRows)
}

// Pairs returns the mean number of visible pairs of query and key in a row of length tokens, if each query sees the
// keys before it in its document. Shorter rows than those read are parts of them.
func (d Documents) Pairs(length int) float64 {
	if len(d) == 0 {
		return float64(length) * float64(length+1) / 2
	}
	pairs, rows := 0, 0
	for _, starts := range d {
		for from := 0; from+length <= len(starts); from += length {
			for i := from; i < from+length; i++ {
				pairs += i + 1 - max(int(starts[i]), from)
			}
			rows++
		}
	}
	return float64(pairs) / float64(max(rows, 1))
}
