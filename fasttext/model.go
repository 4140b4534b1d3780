package fasttext

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"anneal/internal/units"
)

// LabelPrefix is the prefix of label names in model files and in training lines.
const LabelPrefix = "__label__"

// Loss selects how scores are computed from the hidden vector. The values are those of the file format.
type Loss int32

const (
	HierarchicalSoftmax Loss = 1 + iota // a walk down a Huffman tree of the labels
	NegativeSampling                    // the label against a few others, by logistic regression
	Softmax                             // over all labels
	OneVsAll                            // a logistic regression for each label
)

var lossNames = []string{"", "hs", "ns", "softmax", "ova"}

// String returns the name that fastText gives a loss: hs, ns, softmax, ova.
func (l Loss) String() string {
	if l >= HierarchicalSoftmax && l <= OneVsAll {
		return lossNames[l]
	}
	return fmt.Sprintf("loss %d", int32(l))
}

// ParseLoss returns the loss with the given name: softmax, hs, ova or ns.
func ParseLoss(name string) (Loss, error) {
	for l := HierarchicalSoftmax; l <= OneVsAll; l++ {
		if lossNames[l] == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown loss %q\n  try softmax, hs, ova or ns", name)
}

// args are the hyper-parameters of a model file, in the order of the file.
type args struct {
	Dim, Window, Epoch, MinCount, Neg, WordNgrams int32
	Loss                                          Loss
	Model                                         int32 // 3 is supervised
	Bucket, MinN, MaxN, LRUpdateRate              int32
	T                                             float64
}

const supervised = 3

// Limits on the values in a file. They are far above those in use, and bound the work per byte of text.
const (
	maxDim    = 1 << 16
	maxNgram  = 64
	maxWeight = 1e6 // larger weights could overflow in a sum; trained ones are below 1e3
)

// check returns an error if no model can have these hyper-parameters.
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
	tree   []node // for hierarchical softmax
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

// Labels returns the names of the labels without their prefix, the most frequent first. Scores use the same order.
// The caller must not modify them.
func (m *Model) Labels() []string { return slices.Clip(m.labels) }

// Quantised reports whether the vectors are product codes, as in .ftz files.
func (m *Model) Quantised() bool { return m.input.codes != nil }

func (m *Model) String() string {
	a := m.args
	kind := ""
	if m.Quantised() {
		kind = ", quantised"
	}
	return fmt.Sprintf("%d labels, %s words, %s rows of %d%s, %v, n-grams of %d words and %d to %d characters",
		len(m.labels), units.Commas(m.dict.nwords), units.Commas(m.input.rows), a.Dim, kind, a.Loss,
		max(a.WordNgrams, 1), a.MinN, a.MaxN)
}

// node is a node of the Huffman tree of hierarchical softmax. The leaves come first; they are the labels.
type node struct {
	parent, left, right int32
	count               int64
	binary              bool // is the right child
}

// manyTokens exceeds any count of tokens. Nodes that do not exist yet have this count, so that they are not chosen.
const manyTokens = 1e15

// huffman builds the tree from counts in descending order. For equal counts it chooses as the original does, because
// the paths depend on it.
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

// sigmoids is the original's look-up table of σ over [−8, 8].
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

// smoothLog is the original's logarithm of a score: it adds 1e-5 first.
func smoothLog(x float32) float32 { return float32(math.Log(float64(x) + 1e-5)) }
