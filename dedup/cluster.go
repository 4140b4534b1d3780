package dedup

import (
	"iter"
	"slices"
)

// Clusters holds the connected components of pairs. It stores only documents with a partner, 16 bytes each.
type Clusters struct {
	documents []uint64 // sorted
	first     []int32  // index, in documents, of the cluster's first document, which is kept
	size      []int32  // of the cluster; only at its first
}

// NewClusters joins the pairs by union-find, always under the smaller document. It uses path halving and no recursion,
// so long chains do not need a deep stack. The result does not depend on the order of the pairs, which are read twice.
func NewClusters(pairs iter.Seq2[Pair, error]) (*Clusters, error) {
	c := &Clusters{}
	for p, err := range pairs {
		if err != nil {
			return nil, err
		}
		c.documents = appendUnique(c.documents, p.A, p.B)
	}
	c.documents = unique(c.documents)
	c.first = make([]int32, len(c.documents))
	for i := range c.first {
		c.first[i] = int32(i)
	}
	for p, err := range pairs {
		if err != nil {
			return nil, err
		}
		a, b := c.root(c.index(p.A)), c.root(c.index(p.B))
		c.first[max(a, b)] = min(a, b)
	}
	c.size = make([]int32, len(c.documents))
	for i := range c.first {
		c.first[i] = c.root(int32(i))
		c.size[c.first[i]]++
	}
	return c, nil
}

// appendUnique appends documents to a list that will be passed to unique. Before the list grows, it drops repetitions.
func appendUnique(list []uint64, a, b uint64) []uint64 {
	if len(list)+2 > cap(list) && len(list) > 1<<12 {
		slices.Sort(list)
		list = slices.Compact(list)
		if len(list) > cap(list)/2 {
			list = slices.Grow(list, len(list))
		}
	}
	return append(list, a, b)
}

// unique sorts a list and drops repetitions.
func unique(list []uint64) []uint64 {
	slices.Sort(list)
	return slices.Clip(slices.Compact(list))
}

func (c *Clusters) root(i int32) int32 {
	for c.first[i] != i {
		c.first[i] = c.first[c.first[i]]
		i = c.first[i]
	}
	return i
}

func (c *Clusters) index(document uint64) int32 {
	i, ok := slices.BinarySearch(c.documents, document)
	if !ok {
		return -1
	}
	return int32(i)
}

// Of returns the first document of a document's cluster, which is kept, and the size of the cluster. A document
// without duplicates is a cluster of its own.
func (c *Clusters) Of(document uint64) (first uint64, size int) {
	i := c.index(document)
	if i < 0 {
		return document, 1
	}
	f := c.first[i]
	return c.documents[f], int(c.size[f])
}

// Cluster is a group of duplicate documents, of which one is kept.
type Cluster struct {
	Kept uint64 `json:"kept"` // the smallest; it names the cluster
	Size int    `json:"size"` // number of documents, including the kept one
}

// All yields the clusters in the order of their kept documents.
func (c *Clusters) All() iter.Seq[Cluster] {
	return func(yield func(Cluster) bool) {
		for i, d := range c.documents {
			if c.size[i] > 0 && !yield(Cluster{d, int(c.size[i])}) {
				return
			}
		}
	}
}

// Counts returns the number of clusters, and how many documents would be dropped.
func (c *Clusters) Counts() (clusters, dropped int) {
	for _, n := range c.size {
		if n > 0 {
			clusters++
		}
	}
	return clusters, len(c.documents) - clusters
}
