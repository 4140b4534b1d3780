package fasttext

import (
	"fmt"
	"math"
	"strings"
)

// LabelPrefix is what the names of labels start with in files, and in lines to train on.
const LabelPrefix = "__label__"

// Loss is how scores come from the hidden vector. The numbers are those in files.
type Loss int32

const (
	HierarchicalSoftmax Loss = 1 + iota
	NegativeSampling
	Softmax
	OneVsAll
)

var lossNames = []string{"", "hs", "ns", "softmax", "ova"}

func (l Loss) String() string {
	if l >= HierarchicalSoftmax && l <= OneVsAll {
		return lossNames[l]
	}
	return fmt.Sprintf("loss %d", int32(l))
}

// ParseLoss returns the loss of that name: softmax, hs, ova or ns.
func ParseLoss(name string) (Loss, error) {
	for l := HierarchicalSoftmax; l <= OneVsAll; l++ {
		if lossNames[l] == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown loss %q\n  try softmax, hs, ova or ns", name)
}

// args are the hyper-parameters that a file holds, in its order.
type args struct {
	Dim, Window, Epoch, MinCount, Neg, WordNgrams int32
	Loss                                          Loss
	Model                                         int32 // supervised is 3
	Bucket, MinN, MaxN, LRUpdateRate              int32
	T                                             float64
}

const supervised = 3

// Limits on what a file may ask for, far above what is in use: they bound the work for a byte of text.
const (
	maxDim    = 1 << 16
	maxNgram  = 64
	maxWeight = 1e6 // larger ones could overflow in a sum; trained ones are below 1e3
)

// check refuses hyper-parameters that no model can have.
func (a *args) check() error {
	switch {
	case a.Model != supervised:
		return fmt.Errorf("the file holds word vectors, not a classifier\n  try a model trained with `fasttext supervised`")
	case a.Loss < HierarchicalSoftmax || a.Loss > OneVsAll:
		return fmt.Errorf("unknown loss %d", int32(a.Loss))
	case a.Dim < 1 || a.Dim > maxDim:
		return fmt.Errorf("vectors of %d dimensions are not supported: use 1 to %d", a.Dim, maxDim)
	case a.WordNgrams > maxNgram || a.MaxN > maxNgram || a.MaxN < 0:
		return fmt.Errorf("n-grams of %d words and %d characters are not supported: use at most %d", a.WordNgrams, a.MaxN, maxNgram)
	case a.Bucket < 0 || a.Bucket == 0 && (a.MaxN > 0 || a.WordNgrams > 1):
		return fmt.Errorf("%d buckets for n-grams are not supported", a.Bucket)
	}
	return nil
}

// Model is a classifier. It is immutable; any number of Predictors may share it.
type Model struct {
	args   args
	dict   *dictionary
	input  matrix // [words + n-grams, dim]
	output matrix // [labels, dim]
	tree   []node // of hierarchical softmax
	labels []string
}

func newModel(a args, d *dictionary, input, output matrix) *Model {
	m := &Model{args: a, dict: d, input: input, output: output}
	for _, name := range d.words[d.nwords:] {
		m.labels = append(m.labels, strings.TrimPrefix(name, LabelPrefix))
	}
	if a.Loss == HierarchicalSoftmax {
		m.tree = huffman(d.counts[d.nwords:])
	}
	return m
}

// Labels are the names of the labels without their prefix, the most frequent first. Scores go by this order.
func (m *Model) Labels() []string { return m.labels }

// Quantised says whether the vectors are product codes, as in .ftz files.
func (m *Model) Quantised() bool { return m.input.codes != nil }

func (m *Model) String() string {
	a := m.args
	kind := ""
	if m.Quantised() {
		kind = ", quantised"
	}
	return fmt.Sprintf("%d labels, %d words, %d rows of %d%s, %v, n-grams of %d words and %d to %d characters", len(m.labels), m.dict.nwords,
		m.input.rows, a.Dim, kind, a.Loss, max(a.WordNgrams, 1), a.MinN, a.MaxN)
}

// node is of the Huffman tree of hierarchical softmax; the leaves come first, and are the labels.
type node struct {
	parent, left, right int32
	count               int64
	binary              bool // it is the right child
}

// manyTokens is above any count of tokens: nodes that are not made yet have it, so that none is chosen.
const manyTokens = 1e15

// huffman builds the tree over counts that do not rise. The original's choices at equal counts are kept, as paths depend on
// them.
func huffman(counts []int64) []node {
	n := len(counts)
	tree := make([]node, 2*n-1)
	for i := range tree {
		tree[i] = node{parent: -1, left: -1, right: -1, count: manyTokens}
		if i < n {
			tree[i].count = counts[i]
		}
	}
	leaf, inner := n-1, n
	for i := n; i < len(tree); i++ {
		var least [2]int
		for j := range least {
			if leaf >= 0 && tree[leaf].count < tree[inner].count {
				least[j] = leaf
				leaf--
			} else {
				least[j] = inner
				inner++
			}
		}
		tree[i].left, tree[i].right = int32(least[0]), int32(least[1])
		tree[i].count = tree[least[0]].count + tree[least[1]].count
		tree[least[0]].parent, tree[least[1]].parent = int32(i), int32(i)
		tree[least[1]].binary = true
	}
	return tree
}

// sigmoids is the table of σ over [−8, 8] that the original looks scores up in.
var sigmoids = func() (t [513]float32) {
	for i := range t {
		x := float32(i*16)/512 - 8
		t[i] = float32(1 / (1 + float64(float32(math.Exp(float64(-x))))))
	}
	return t
}()

func sigmoid(x float32) float32 {
	switch {
	case x < -8:
		return 0
	case x > 8:
		return 1
	case x != x:
		return x
	}
	return sigmoids[int((x+8)*32)]
}

// smoothLog is the logarithm the original takes of scores: they rise by 1e-5 on their way through it.
func smoothLog(x float32) float32 { return float32(math.Log(float64(x) + 1e-5)) }
