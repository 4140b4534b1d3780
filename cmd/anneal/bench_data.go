package main

import (
	"context"

	"anneal/bench"
	"anneal/internal/units"
	"anneal/prepare"
)

type benchDataCmd struct {
	Paths   []string `arg:"" optional:"" name:"files-or-dirs" help:"Text. Default: the Go source on this machine; for stages meant for prose, its comments."`
	MB      count    `name:"mb" default:"120" help:"Largest amount of text to read, in MB."`
	Threads count    `default:"1" help:"Worker threads."`
}

func (benchDataCmd) Help() string {
	return example("anneal bench data", "anneal bench data --threads 2 --json", "anneal bench data --mb 50 crawl/") +
		"\n\nEach figure is the median of three runs, in megabytes (10⁶ bytes) of text per second, " +
		"for all threads together."
}

func (c benchDataCmd) Run(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		r, err := bench.Data(ctx, bench.DataSpeedOptions{
			Text: prepare.Text{Paths: c.Paths}, Bytes: int64(c.MB) * 1e6, Threads: int(c.Threads),
			Progress: func(what string) { s.notef("%s", what) },
		})
		if err != nil {
			return asData(err)
		}
		s.printf("%s of text, %s of prose, %d threads\n\n", units.FormatSize(r.Bytes),
			units.FormatSize(r.ProseBytes), r.Threads)
		for _, line := range []struct {
			name string
			rate float64
		}{
			{"pretokenize", r.Pretokenize}, {"encode, cold", r.EncodeCold}, {"encode, warm", r.EncodeWarm},
			{"MinHash, text to clusters", r.MinHash}, {"Bloom filter, 13-grams", r.Bloom}, {"filters, all", r.Filters},
			{"pipeline, files to shards", r.Pipeline},
		} {
			s.printf("%-28s %8.1f MB/s\n", line.name, line.rate)
		}
		s.printf("%-28s %8.2f s\n", "BPE training to 32,768", r.BPETrainSeconds)
		return s.emit(r)
	})
}
