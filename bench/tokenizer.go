package bench

import (
	"context"
	"time"

	"anneal/prepare"
	"anneal/tokenizer"
)

// TokenizerSpeed is the speed of training and using a tokenizer.
type TokenizerSpeed struct {
	TrainMBPerSecond       float64 `json:"train_mb_per_second"`       // all threads, without reading
	PretokenizeMBPerSecond float64 `json:"pretokenize_mb_per_second"` // one core
	EncodeColdMBPerSecond  float64 `json:"encode_cold_mb_per_second"` // one core, empty caches
	EncodeWarmMBPerSecond  float64 `json:"encode_warm_mb_per_second"` // one core, the same text again
	BytesPerToken          float64 `json:"bytes_per_token"`
	Bytes                  int64   `json:"bytes"`
	VocabSize              int     `json:"vocab_size"`
	TrainSeconds           float64 `json:"train_seconds"`
}

// encodeBytes is the size of the text for one pass of the encoder: it takes seconds even on slow machines.
const encodeBytes = 32 << 20

// Tokenizer reads up to limit bytes of text into memory, or of the Go source if text has no paths. It learns a
// vocabulary from it and encodes it twice.
func Tokenizer(ctx context.Context, text prepare.Text, limit int64, o tokenizer.TrainOptions) (TokenizerSpeed, error) {
	text, _, err := text.OrGoSource()
	if err != nil {
		return TokenizerSpeed{}, err
	}
	docs, size, err := text.Read(ctx, limit)
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

	b := &dataBench{threads: 1, source: docs}
	for n, done := 0, 0; n < len(docs); n++ {
		if done += len(docs[n]); done >= encodeBytes {
			b.source = docs[:n+1]
			break
		}
	}
	s.PretokenizeMBPerSecond = b.pretokenize(tok)
	s.EncodeColdMBPerSecond, s.EncodeWarmMBPerSecond = b.encode(tok)
	fit, err := tokenizer.Evaluate(tok, each(b.source))
	s.BytesPerToken = fit.BytesPerToken
	return s, err
}
