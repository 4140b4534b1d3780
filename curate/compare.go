package curate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"anneal/corpus"
	"anneal/dedup"
	"anneal/internal/fileio"
)

// Between two passes, package dedup compares all documents that the first pass kept, numbered in order. The decisions
// go to one file, with a part for each split; the second pass carries them out. A decision in a part is:
//
//	documents since the previous decision (uvarint)  rule that drops the document (byte)
//	document of its cluster that stays, documents in the cluster (uvarints)
//	number of paragraphs and lines to drop (uvarint); for each the unit (byte) and its ordinal in the text (uvarint)

// part is the place of the decisions about a split.
type part struct {
	At    int64  `json:"at"`
	Sum   string `json:"sum"`   // xxh3, 128 bits
	First uint64 `json:"first"` // number of the split's first document
}

// decide compares the documents that pass k−1 kept.
func (r *runner) decide(ctx context.Context, k int) (*entry, error) {
	dir := filepath.Join(r.o.Dir, betweenDir)
	tmp, err := os.MkdirTemp(dir, "compare-*") // if the process is killed, this is removed with the directory
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	o := r.passes[k].compare()
	o.Memory, o.Threads = r.memory.Sorting, r.o.Workers
	total := int64(0)
	for i := range r.splits {
		total += r.size(k, i) * int64(o.Readings())
	}
	r.read.Store(0)
	decided, rep, err := dedup.Decide(ctx, o, tmp, func(bool) iter.Seq2[corpus.Document, error] {
		return r.left(ctx, k-1, func(bytes int64) { r.progress("comparing", bytes, total) })
	})
	if err != nil {
		return nil, err
	}
	defer decided.Close()
	e := &entry{record: record{Step: 2*k - 1, Input: r.sums(&r.state, k-1), Files: map[string]written{}}}
	if err := r.writeDecisions(e, k, decided, &rep); err != nil {
		return nil, err
	}
	e.Tally.Comparisons = []dedup.Report{rep}
	return e, nil
}

// left reads the documents that a pass kept, in order. It reads several shards at once, each a little ahead.
func (r *runner) left(ctx context.Context, k int, progress func(bytes int64)) iter.Seq2[corpus.Document, error] {
	return func(yield func(corpus.Document, error) bool) {
		ctx, cancel := context.WithCancel(ctx) // the readers end with the sequence
		defer cancel()
		shards := make(chan chan batch, max(1, r.o.workers()-1))
		go func() {
			defer close(shards)
			for i := range r.splits {
				shard := make(chan batch, 2)
				select {
				case shards <- shard:
					go r.ahead(ctx, r.passes[k].docs(i), shard)
				case <-ctx.Done():
					return
				}
			}
		}()
		for shard := range shards {
			for b := range shard {
				for _, d := range b.documents {
					if !yield(d, nil) {
						return
					}
				}
				if b.err != nil {
					yield(corpus.Document{}, b.err)
					return
				}
				progress(b.read)
			}
		}
		if err := ctx.Err(); err != nil {
			yield(corpus.Document{}, err)
		}
	}
}

// batch is some documents of a shard, and the number of bytes read for them.
type batch struct {
	documents []corpus.Document
	read      int64
	err       error
}

const batchBytes = 1 << 19

// ahead sends the documents of a shard.
func (r *runner) ahead(ctx context.Context, name string, to chan<- batch) {
	defer close(to)
	send := func(b batch) bool {
		select {
		case to <- b:
			return true
		case <-ctx.Done():
			return false
		}
	}
	in, err := openShard(r.o.Dir, name)
	if err != nil {
		send(batch{err: err})
		return
	}
	defer in.close()
	var b batch
	size, before := 0, int64(0)
	for d, err := range in.documents() {
		b.documents, b.err = append(b.documents, d.Document), err
		if size += len(d.Text) + len(d.Fields); size < batchBytes && err == nil {
			continue
		}
		if err != nil {
			b.documents = b.documents[:len(b.documents)-1]
		}
		now := in.read()
		if b.read = now - before; !send(b) || err != nil {
			return
		}
		b, size, before = batch{}, 0, now
	}
	b.read = in.read() - before
	send(b)
}

func (r *runner) writeDecisions(e *entry, k int, decided *dedup.Decisions, rep *dedup.Report) (err error) {
	name := r.passes[k].decisions()
	path := filepath.Join(r.o.Dir, filepath.FromSlash(name))
	f, err := os.CreateTemp(filepath.Dir(path), ".decisions.tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<18)
	hash, at := xxh3.New128(), int64(0)
	next, stop := iter.Pull2(decided.All())
	defer stop()
	x, err, more := next()
	first := uint64(0)
	var b []byte
	for i := range r.splits {
		hash.Reset()
		begin := at
		end := first + uint64(r.state.maps[k-1][i].Kept)
		for last := first; err == nil && more && x.Document < end; x, err, more = next() {
			b = appendDecision(b[:0], x, x.Document-last)
			last = x.Document
			for _, c := range x.Cuts {
				rep.Units[c.Unit.String()]++
			}
			hash.Write(b)
			at += int64(len(b))
			if _, err := out.Write(b); err != nil {
				return err
			}
		}
		sum := hash.Sum128().Bytes()
		e.Parts = append(e.Parts, part{begin, hex.EncodeToString(sum[:]), first})
		first = end
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		f.Chmod(0o644) // as far as the file system has modes
		err = fileio.Put(f, path)
	}
	if err != nil {
		return err
	}
	sum, err := fileSum(path)
	e.Files[name] = written{at, sum}
	return err
}

func appendDecision(b []byte, x dedup.Decision, since uint64) []byte {
	b = append(binary.AppendUvarint(b, since), byte(x.Drop))
	b = binary.AppendUvarint(b, x.First)
	b = binary.AppendUvarint(b, uint64(x.Size))
	b = binary.AppendUvarint(b, uint64(len(x.Cuts)))
	for _, c := range x.Cuts {
		b = binary.AppendUvarint(append(b, byte(c.Unit)), uint64(c.Ordinal))
	}
	return b
}

// compared is the stage that carries out the decisions of a comparison. Its documents come in order.
type compared struct {
	name  string // of the stage
	first uint64 // number of the split's first document
	row   uint64 // of the next document in the split
	rest  []byte // decisions that follow
	at    uint64 // row of the next one
	more  bool
	now   dedup.Decision // about the last document
}

// begin reads the decisions about a split.
func (c *compared) begin(r *runner, k, split int) error {
	e := r.state.compared[k]
	name := r.passes[k].decisions()
	f, err := os.Open(filepath.Join(r.o.Dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer f.Close()
	end := e.Files[name].Bytes
	if split+1 < len(e.Parts) {
		end = e.Parts[split+1].At
	}
	p := e.Parts[split]
	c.rest = make([]byte, end-p.At)
	if _, err := f.ReadAt(c.rest, p.At); err != nil && err != io.EOF {
		return err
	}
	if sum := xxh3.Hash128(c.rest).Bytes(); hex.EncodeToString(sum[:]) != p.Sum {
		return fmt.Errorf("%s is damaged\n  remove it, then give the same command again", f.Name())
	}
	c.first, c.row, c.at = p.First, 0, 0
	c.advance()
	return nil
}

func (c *compared) advance() {
	if c.more = len(c.rest) > 0; c.more {
		c.at += c.uvarint()
	}
}

// uvarint reads a number. This program wrote the bytes, and their checksum was verified.
func (c *compared) uvarint() uint64 {
	v, n := binary.Uvarint(c.rest)
	c.rest = c.rest[max(n, 1):]
	return v
}

func (c *compared) byte() byte {
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

// The rules of dedup, in the order of dedup.Rule, then the rule for documents that become empty.
var compareRules = []string{"exact", "near", "ngrams", "emptied"}

// Apply drops the document, or removes its repeated parts.
func (c *compared) Apply(d *Doc) Verdict {
	n := c.first + c.row
	c.now = dedup.Decision{Document: n, First: n, Size: 1, Cuts: c.now.Cuts[:0]}
	found := c.more && c.at == c.row
	c.row++
	if !found {
		return Verdict{}
	}
	c.now.Drop = dedup.Rule(c.byte())
	c.now.First, c.now.Size = c.uvarint(), int(c.uvarint())
	for range c.uvarint() {
		unit := dedup.Unit(c.byte())
		c.now.Cuts = append(c.now.Cuts, dedup.Cut{Unit: unit, Ordinal: uint32(c.uvarint())})
	}
	c.advance()
	if c.now.Drop != 0 {
		return Verdict{true, c.name + "." + compareRules[c.now.Drop-1], float64(c.now.Size)}
	}
	if len(c.now.Cuts) == 0 {
		return Verdict{}
	}
	d.SetText(dedup.CutOut(bytes.Clone(d.Text), c.now.Cuts)) // examples of the report show the text before
	if len(bytes.TrimSpace(d.Text)) == 0 {
		return Verdict{true, c.name + ".emptied", float64(len(c.now.Cuts))}
	}
	return Verdict{}
}

// appendCluster appends a line about a document in a cluster: its number among the compared documents, the number of
// the one that is kept, and the size of the cluster.
func (c *compared) appendCluster(b []byte, d *Doc) []byte {
	b = appendPlace(append(b, '{'), d)
	for _, x := range []struct {
		name  string
		value uint64
	}{{"document", c.now.Document}, {"kept", c.now.First}, {"size", uint64(c.now.Size)}} {
		b = strconv.AppendUint(append(append(append(b, `,"`...), x.name...), `":`...), x.value, 10)
	}
	return append(b, "}\n"...)
}

// compareOptions are the options of a dedup stage.
func compareOptions(o given) (*dedup.Options, error) {
	s := dedup.Settings{
		Exact: o.texts("exact"), Near: o.truth("near"), Verify: o.number("verify"), NGrams: o.truth("ngrams"),
		NGramShare: o.number("ngram_share"),
	}
	mib := 0
	if err := o.whole(1<<20, []string{"min_words", "words", "bands", "rows", "ngram_words", "ngram_mib"},
		&s.MinWords, &s.Words, &s.Bands, &s.Rows, &s.NGramWords, &mib); err != nil {
		return nil, err
	}
	s.NGramBytes = int64(mib) << 20
	d, err := s.Options(pair)
	return &d, err
}

// pair writes an option as a pipeline does.
func pair(option string, value any) string {
	switch v := value.(type) {
	case nil:
		return option
	case []string:
		return option + ": [" + strings.Join(v, ", ") + "]"
	}
	return fmt.Sprintf("%s: %v", option, value)
}
