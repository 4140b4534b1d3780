package lab

import (
	"context"
	"iter"
	"time"

	"anneal/corpus"
	"anneal/tokenizer"
)

// EvalTokenizer measures how well a tokenizer fits a text.
func EvalTokenizer(ctx context.Context, text Text, tok *tokenizer.Tokenizer) (tokenizer.Stats, corpus.Report, error) {
	r, docs, err := text.open(ctx)
	if err != nil {
		return tokenizer.Stats{}, corpus.Report{}, err
	}
	stats, err := tokenizer.Evaluate(tok, docs)
	return stats, r.Report(), err
}

// TokenizerSpeed is how fast a tokenizer is learnt and used.
type TokenizerSpeed struct {
	TrainMBPerSecond      float64 `json:"train_mb_per_second"`       // all threads, reading not counted
	EncodeColdMBPerSecond float64 `json:"encode_cold_mb_per_second"` // one core, empty caches
	EncodeWarmMBPerSecond float64 `json:"encode_warm_mb_per_second"` // one core, the same text again
	BytesPerToken         float64 `json:"bytes_per_token"`
	Bytes                 int64   `json:"bytes"`
	VocabSize             int     `json:"vocab_size"`
	TrainSeconds          float64 `json:"train_seconds"`
}

// encodeBytes is how much text one pass of the encoder measures: seconds even on slow machines.
const encodeBytes = 32 << 20

// BenchTokenizer reads up to limit bytes of text into memory, learns a vocabulary from it and encodes it twice.
func BenchTokenizer(ctx context.Context, text Text, limit int64, o tokenizer.TrainOptions) (TokenizerSpeed, error) {
	docs, size, err := text.read(ctx, limit)
	if err != nil {
		return TokenizerSpeed{}, err
	}
	s := TokenizerSpeed{Bytes: size}
	start := time.Now()
	tok, err := tokenizer.Train(ctx, o, each(docs))
	if err != nil {
		return TokenizerSpeed{}, err
	}
	s.TrainSeconds = time.Since(start).Seconds()
	s.TrainMBPerSecond = float64(size) / 1e6 / s.TrainSeconds
	s.VocabSize = tok.VocabSize()

	enc := tok.NewEncoder()
	var ids []uint32
	pass := func() (rate, bytesPerToken float64) {
		start, done, tokens := time.Now(), 0, 0
		for _, d := range docs {
			ids = enc.Encode(ids[:0], d)
			tokens += len(ids)
			if done += len(d); done >= encodeBytes {
				break
			}
		}
		return float64(done) / 1e6 / time.Since(start).Seconds(), float64(done) / float64(max(tokens, 1))
	}
	s.EncodeColdMBPerSecond, s.BytesPerToken = pass()
	s.EncodeWarmMBPerSecond, _ = pass()
	return s, nil
}

// read returns the first documents of the text, up to limit bytes.
func (t Text) read(ctx context.Context, limit int64) (docs [][]byte, size int64, err error) {
	_, all, err := t.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	for d, err := range all {
		if err != nil {
			return nil, 0, err
		}
		docs = append(docs, d)
		if size += int64(len(d)); size >= limit {
			break
		}
	}
	return docs, size, nil
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
