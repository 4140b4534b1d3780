package bench

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"anneal/corpus"
	"anneal/curate"
	"anneal/dedup"
	"anneal/prepare"
	"anneal/tokenizer"
)

// DataSpeed is the speed of each part of the data wing on this machine, in megabytes (10⁶ bytes) of text per second
// on Threads threads together. Each value is the median of three runs. Only Pipeline includes reading.
type DataSpeed struct {
	Pretokenize float64 `json:"pretokenize_mb_per_second"` // text to pretokens
	EncodeCold  float64 `json:"encode_cold_mb_per_second"` // text to tokens, with empty caches
	EncodeWarm  float64 `json:"encode_warm_mb_per_second"` // the same text again
	// text to clusters of near-duplicates: 112 permutations, 14 bands of 8
	MinHash  float64 `json:"minhash_mb_per_second"`
	Bloom    float64 `json:"bloom_mb_per_second"`    // 13-grams through a blocked Bloom filter of 256 MiB
	Filters  float64 `json:"filters_mb_per_second"`  // all of: normalize, both of Gopher's, C4, FineWeb, PII
	Pipeline float64 `json:"pipeline_mb_per_second"` // files to shards: read, all filters, dedup, tokenize, write

	BPETrainSeconds float64 `json:"bpe_train_seconds"` // to learn 32,768 tokens from Bytes of text
	Threads         int     `json:"threads"`
	Bytes           int64   `json:"bytes"`       // of source text
	ProseBytes      int64   `json:"prose_bytes"` // of the text for filters and pipeline
}

// DataSpeedOptions says what BenchData measures.
type DataSpeedOptions struct {
	// used for all measurements; without paths: Go source, and its comments for the parts that need prose
	Text     prepare.Text
	Bytes    int64 // limit on the text to read
	Threads  int   // default 1
	Progress func(what string)
}

// benchPipeline is the configuration for Pipeline and Filters.
const benchPipeline = "stages: [normalize, gopher_repetition, gopher_quality, c4, fineweb, pii%s]\n"

// benchSplit is small, so that a few megabytes of text keep every worker busy, as gigabytes would.
const benchSplit = 1 << 20

// Data measures the data wing.
func Data(ctx context.Context, o DataSpeedOptions) (*DataSpeed, error) {
	o.Threads = max(o.Threads, 1)
	b := &dataBench{ctx: ctx, threads: o.Threads}
	r := &DataSpeed{Threads: o.Threads}
	o.Progress("reading")
	if err := b.read(o, r); err != nil {
		return nil, err
	}
	o.Progress("learning a vocabulary")
	start := time.Now()
	tok, err := tokenizer.Train(ctx, tokenizer.TrainOptions{VocabSize: 32768, Threads: o.Threads}, each(b.source))
	if err != nil {
		return nil, err
	}
	r.BPETrainSeconds = time.Since(start).Seconds()
	for _, m := range []struct {
		name string
		to   []*float64
		rate func() ([]float64, error)
	}{
		{"pretokenizing", []*float64{&r.Pretokenize},
			func() ([]float64, error) { return one(b.pretokenize(tok), nil) }},
		{"encoding", []*float64{&r.EncodeCold, &r.EncodeWarm}, func() ([]float64, error) {
			cold, warm := b.encode(tok)
			return []float64{cold, warm}, nil
		}},
		{"MinHash", []*float64{&r.MinHash}, func() ([]float64, error) { return one(b.minHash()) }},
		{"Bloom filter", []*float64{&r.Bloom}, func() ([]float64, error) { return one(b.bloom()) }},
		{"filters", []*float64{&r.Filters}, func() ([]float64, error) { return one(b.filters()) }},
		{"pipeline", []*float64{&r.Pipeline}, func() ([]float64, error) { return one(b.pipeline(tok)) }},
	} {
		o.Progress(m.name)
		rates := make([][]float64, len(m.to)) // three for each figure
		for range 3 {
			now, err := m.rate()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			for i, rate := range now {
				rates[i] = append(rates[i], rate)
			}
		}
		for i, to := range m.to {
			slices.Sort(rates[i])
			*to = rates[i][1]
		}
	}
	return r, nil
}

// one wraps the result of a function that measures one figure.
func one(rate float64, err error) ([]float64, error) { return []float64{rate}, err }

// dataBench holds the texts.
type dataBench struct {
	ctx           context.Context
	threads       int
	source, prose [][]byte
}

func (b *dataBench) read(o DataSpeedOptions, r *DataSpeed) (err error) {
	text, source, err := o.Text.OrGoSource()
	if err != nil {
		return err
	}
	if b.source, r.Bytes, err = text.Read(b.ctx, o.Bytes); err != nil {
		return err
	}
	b.prose, r.ProseBytes = b.source, r.Bytes
	if source != "" {
		b.prose, r.ProseBytes, err = prose(b.ctx, source, o.Bytes)
	}
	return err
}

// rate runs work on every thread, each on its share of the documents, and returns the total megabytes per second.
func (b *dataBench) rate(docs [][]byte, work func(thread, first int, docs [][]byte)) float64 {
	runtime.GC()
	start := time.Now()
	var group sync.WaitGroup
	size := 0
	for _, d := range docs {
		size += len(d)
	}
	from, done := 0, 0
	for t := range b.threads {
		to := from
		for ; to < len(docs) && done < size*(t+1)/b.threads; to++ {
			done += len(docs[to])
		}
		share, first := docs[from:to], from
		group.Go(func() { work(t, first, share) })
		from = to
	}
	group.Wait()
	return float64(size) / 1e6 / time.Since(start).Seconds()
}

func (b *dataBench) pretokenize(tok *tokenizer.Tokenizer) float64 {
	return b.rate(b.source, func(_, _ int, docs [][]byte) {
		count := tok.NewPretokenizer()
		for _, d := range docs {
			count(d)
		}
	})
}

// encode encodes twice: with empty caches, and with the caches filled by the first time.
func (b *dataBench) encode(tok *tokenizer.Tokenizer) (cold, warm float64) {
	encoders := make([]*tokenizer.Encoder, b.threads)
	for i := range encoders {
		encoders[i] = tok.NewEncoder()
	}
	pass := func(t, _ int, docs [][]byte) {
		var ids []uint32
		for _, d := range docs {
			ids = encoders[t].Encode(ids[:0], d)
		}
	}
	return b.rate(b.source, pass), b.rate(b.source, pass)
}

// minHash finds near-duplicates, from text to clusters.
func (b *dataBench) minHash() (rate float64, err error) {
	size := 0
	for _, d := range b.source {
		size += len(d)
	}
	start := time.Now()
	near, err := dedup.NewNear(dedup.MinHash{}, 1<<30, "")
	if err != nil {
		return 0, err
	}
	defer near.Close()
	errs := make([]error, b.threads)
	b.rate(b.source, func(t, first int, docs [][]byte) {
		s, err := dedup.MinHash{}.NewSigner()
		for i, d := range docs {
			if err == nil {
				err = near.Add(uint64(first+i), s.Keys(d))
			}
		}
		errs[t] = err
	})
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	pairs := dedup.NewPairs(1<<26, "")
	defer pairs.Close()
	if err := near.Link(pairs, b.threads); err != nil {
		return 0, err
	}
	_, err = dedup.NewClusters(pairs.All())
	return float64(size) / 1e6 / time.Since(start).Seconds(), err
}

// bloom passes documents through a new filter in batches of some megabytes, as dedup does.
func (b *dataBench) bloom() (float64, error) {
	f, err := dedup.Bloom{}.NewFilter(b.threads)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	f.Shares(nil, b.source[:1]) // touches the memory of the filter
	size, start := 0, time.Now()
	var shares []float64
	for from := 0; from < len(b.source); {
		to, batch := from, 0
		for ; to < len(b.source) && batch < 8<<20; to++ {
			batch += len(b.source[to])
		}
		shares = f.Shares(shares[:0], b.source[from:to])
		size, from = size+batch, to
	}
	return float64(size) / 1e6 / time.Since(start).Seconds(), nil
}

// filters applies every rule to each document, even after it was dropped.
func (b *dataBench) filters() (float64, error) {
	p, err := curate.Parse(fmt.Appendf(nil, benchPipeline, ""), "bench")
	if err != nil {
		return 0, err
	}
	return b.rate(b.prose, func(_, _ int, docs [][]byte) {
		stages := p.NewStages()
		var d curate.Doc
		for _, text := range docs {
			d.Signals = d.Signals[:0]
			d.SetText(text)
			for _, s := range stages {
				s.Apply(&d)
			}
		}
	}), nil
}

// pipeline processes files of JSON lines into shards of tokens, on disk.
func (b *dataBench) pipeline(tok *tokenizer.Tokenizer) (rate float64, err error) {
	dir, err := os.MkdirTemp("", "anneal-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	raw := filepath.Join(dir, "raw")
	size, err := writeLines(raw, b.prose)
	if err != nil {
		return 0, err
	}
	p, err := curate.Parse(fmt.Appendf(nil, benchPipeline, ", dedup"), "bench")
	if err != nil {
		return 0, err
	}
	runtime.GC()
	start := time.Now()
	clean := filepath.Join(dir, "clean")
	out, err := curate.Run(b.ctx, curate.Options{
		Pipeline: p, Paths: []string{raw}, Dir: clean, Split: benchSplit, Workers: b.threads,
	})
	if err == nil && out.Report.Kept < 2 {
		err = fmt.Errorf("the filters keep %d of %d documents, too few for shards\n"+
			"  pass paths with prose, or no paths", out.Report.Kept, out.Report.Documents)
	}
	if err != nil {
		return 0, err
	}
	_, _, err = prepare.BuildData(b.ctx, prepare.Text{Paths: []string{filepath.Join(clean, "docs")}},
		prepare.DataOptions{
			Dir: filepath.Join(dir, "data"), Tokenizer: tok, ValFraction: 0.01, Threads: b.threads,
		})
	return float64(size) / 1e6 / time.Since(start).Seconds(), err
}

// writeLines writes documents as JSON lines into several files in a directory.
func writeLines(dir string, docs [][]byte) (size int64, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	const files = 16
	var line []byte
	for i := range files {
		var b []byte
		for _, d := range docs[i*len(docs)/files : (i+1)*len(docs)/files] {
			line = append(corpus.AppendString(append(line[:0], `{"text":`...), d), "}\n"...)
			b = append(b, line...)
			size += int64(len(d))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.jsonl", i)), b, 0o666); err != nil {
			return 0, err
		}
	}
	return size, nil
}

func each(docs [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}
