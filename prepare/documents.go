package prepare

import (
	"anneal/config"
	"anneal/dataset"
)

// DocumentStarts reads n training rows of a configuration whose data sets exist, and returns dataset.Batch's DocStart
// of each [n][T]. Rows are those of packing concat in random order, whatever the run's: others need a look at all
// documents.
func DocumentStarts(cfg *config.Config, n int) ([][]int32, error) {
	list, err := cfg.Sources()
	if err != nil {
		return nil, err
	}
	var c Corpus
	defer func() { c.Close() }()
	for _, s := range list {
		set, err := openSource(s)
		if err != nil {
			return nil, err
		}
		c.Sources = append(c.Sources, Source{s, set})
	}
	c.First = c.Sources[0].Set
	plain := cfg.Clone()
	plain.Data.Packing = string(dataset.Concat)
	rows, err := c.openRows(plain)
	if err != nil {
		return nil, err
	}
	var b dataset.Batch
	if err := rows.Batch(&b, 0, n); err != nil {
		return nil, err
	}
	starts := make([][]int32, n)
	for i := range starts {
		starts[i] = b.DocStart[i*b.Context : (i+1)*b.Context]
	}
	return starts, nil
}
