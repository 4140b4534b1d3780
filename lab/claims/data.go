package claims

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"anneal/attention"
	"anneal/config"
	"anneal/corpus"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/tokenizer"
)

// dataClaims are about tokens, rows and their order.
func dataClaims() []Claim {
	return []Claim{curriculum(), packing(), endOfText(), gpt4Tokens(), fertility()}
}

func curriculum() Claim {
	return Claim{
		Number: 23, Seconds: 60,
		Says:   "A curriculum from easy to hard texts improves the final loss by 5 to 15 %.",
		Source: "guides after Bengio et al. 2009",
		How: smallRuns + "data.order = first length over 15% and first compression over 15%, compared with random " +
			"order",
		Rule: "holds if the better of the two gains 5 % or more; holds when 'improves' is enough if it gains 1 % " +
			"or more",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			var orders [][]string
			for _, metric := range []string{"length", "compression"} {
				if err := e.score(ctx, metric); err != nil {
					return nil, err
				}
				orders = append(orders, []string{"data.order=first " + metric + " over 15%"})
			}
			bits, err := e.bits(ctx, nil, orders[0], orders[1])
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"random order", mean(bits[0]), "bits/byte"},
				{"short texts first are better by", better(bits[0], bits[1]), "%"},
				{"repetitive texts first are better by", better(bits[0], bits[2]), "%"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			short, easy := f.Of("short texts first are better by"), f.Of("repetitive texts first are better by")
			most := max(short, easy)
			why := fmt.Sprintf("Random order ends at %s; short texts first are %s, texts that compress well %s.",
				f.Text("random order"), gain(short), gain(easy))
			if most >= 1 && most < 5 {
				return when("any gain counts: it is smaller than claimed", why)
			}
			return choose(most >= 5, why)
		},
	}
}

// score scores the documents of the source by a metric, unless they are already scored.
func (e *Env) score(ctx context.Context, metric string) error {
	dir, err := e.source(ctx)
	if err != nil {
		return err
	}
	set, err := dataset.Open(dir)
	if err != nil {
		return err
	}
	path := set.ScoresPath(metric)
	set.Close()
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	_, err = prepare.Score(ctx, prepare.ScoreOptions{Dir: dir, By: metric})
	return err
}

func packing() Claim {
	return Claim{
		Number: 24, Seconds: 20,
		Says:   "Packing raises the share of positions that are trained on from 60 % to 99 or 100 %.",
		Source: "Krell et al. 2021, arXiv 2107.02027; guides",
		How: "the source of the Go standard library in rows of 512, 2,048 and 8,192 tokens: one document a row " +
			"(pad), joined (concat), and best_fit",
		Rule: "holds if one document a row trains on 50 to 70 % at every length and best_fit on 99 % or more; " +
			"holds when documents have the right lengths if only best_fit does",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			dir, err := e.source(ctx)
			if err != nil {
				return nil, err
			}
			set, err := dataset.Open(dir)
			if err != nil {
				return nil, err
			}
			defer set.Close()
			var list []Figure
			var least, cut float64 = 100, 0
			for _, length := range []int{512, 2048, 8192} {
				pad, err := set.Utilisation(dataset.Pad, length)
				if err != nil {
					return nil, err
				}
				fit, err := set.Utilisation(dataset.BestFit, length)
				if err != nil {
					return nil, err
				}
				joined, err := set.Utilisation(dataset.Concat, length)
				if err != nil {
					return nil, err
				}
				least = min(least, 100*fit.Share())
				cut = max(cut, 100*float64(joined.Cut)/float64(set.Manifest.Train.Documents))
				list = append(list, Figure{fmt.Sprintf("one document a row of %d", length), 100 * pad.Share(), "%"})
			}
			return append(list, Figure{"best fit, at least", least, "%"},
				Figure{"documents that joining cuts, at most", cut, "%"}), nil
		},
		Judge: func(f *Figures) Verdict {
			var unpacked []float64
			for _, length := range []int{512, 2048, 8192} {
				unpacked = append(unpacked, f.Of(fmt.Sprintf("one document a row of %d", length)))
			}
			low, high, fit := slices.Min(unpacked), slices.Max(unpacked), f.Of("best fit, at least")
			why := fmt.Sprintf("One document a row trains on %.0f to %.0f %% of the positions, by the length of "+
				"the row; best fit on at least %.2f %%; joining cuts up to %.0f %% of the documents.", low, high, fit,
				f.Of("documents that joining cuts, at most"))
			if fit >= 99 && (low < 50 || high > 70) {
				return when("documents have lengths that leave 40 % of a row empty", why)
			}
			return choose(fit >= 99, why)
		},
	}
}

func endOfText() Claim {
	return Claim{
		Number: 25, Seconds: 60,
		Says:   "In packed rows a token between documents is enough: attention need not be masked.",
		Source: "guides; Dubey et al. 2024 (Llama 3), arXiv 2407.21783, mask, and find it matters for long contexts",
		How: smallRuns + "data.document_mask = false and true; and the share of pairs of query and key that " +
			"cross documents in rows of 256 and 8,192 tokens",
		Rule: "holds if the loss without a mask is within 1 % and few pairs (20 %) cross documents in long rows; " +
			"holds when rows are short if only the loss is within 1 %",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			bits, err := e.bits(ctx, nil, []string{"data.document_mask=false"})
			if err != nil {
				return nil, err
			}
			list := []Figure{{"masked", mean(bits[0]), "bits/byte"}, {"not masked", mean(bits[1]), "bits/byte"}}
			for _, length := range []int{256, 8192} {
				share, err := e.crossing(length)
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{fmt.Sprintf("pairs across documents in %d tokens", length),
					100 * share, "%"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			same := f.Of("not masked") <= 1.01*f.Of("masked")
			far := f.Of("pairs across documents in 8192 tokens")
			why := fmt.Sprintf("Without a mask the loss is %s, with it %s; %s of the pairs cross documents in rows "+
				"of 256 tokens, %s in rows of 8,192.", f.Text("not masked"), f.Text("masked"),
				f.Text("pairs across documents in 256 tokens"), f.Text("pairs across documents in 8192 tokens"))
			if same && far > 20 {
				return when("rows are short beside documents, so that few pairs cross", why)
			}
			return choose(same, why)
		},
	}
}

// crossing returns the share of causal pairs of query and key that are in different documents, in rows of a length.
func (e *Env) crossing(length int) (float64, error) {
	const rows = 64
	cfg, err := config.Sources{Overrides: slices.Concat(small, []string{"data.path=" + e.dir.File("source"),
		fmt.Sprint("model.context=", length), fmt.Sprint("train.batch_tokens=", length)})}.Load()
	if err != nil {
		return 0, err
	}
	starts, err := prepare.DocumentStarts(cfg, rows)
	if err != nil {
		return 0, err
	}
	var within, all int64
	for _, start := range starts {
		within += attention.Pairs(nil, start, length, 1)
		all += int64(length) * int64(length+1) / 2
	}
	return 1 - float64(within)/float64(all), nil
}

func gpt4Tokens() Claim {
	return Claim{
		Number: 38, Seconds: 1,
		Says:   "GPT-4 reads a vocabulary of 100,000 merges of bytes.",
		Source: "OpenAI, the file cl100k_base of tiktoken",
		How: "not here: it takes that file, which anneal tokenizer reads but does not bring; the arithmetic of the " +
			"claim",
		Rule: "not measurable here without the file",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			const bytes, merges = 256, 100_000
			return []Figure{{"bytes and merges", bytes + merges, "tokens"}}, nil
		},
		Judge: func(f *Figures) Verdict {
			return elsewhere(fmt.Sprintf("It takes the file cl100k_base; 256 bytes and 100,000 merges would be %s, "+
				"before special ones.", f.Text("bytes and merges")))
		},
	}
}

func fertility() Claim {
	return Claim{
		Number: 39, Seconds: 12,
		Says:   "A low fertility (tokens per word) means longer sequences.",
		Source: "tutorials on tokenizers",
		How: "two vocabularies learned from part of the Go standard library, 512 and 8,192 tokens: fertility and " +
			"tokens of held-out text",
		Rule: "holds if the vocabulary with the lower fertility needs more tokens",
		Measure: func(ctx context.Context, _ *Env) ([]Figure, error) {
			source, err := prepare.GoSource()
			if err != nil {
				return nil, err
			}
			text := prepare.Text{
				Paths:    []string{filepath.Join(source, "net"), filepath.Join(source, "go")},
				Options:  corpus.Options{Extensions: []string{".go"}},
				Progress: func(int64, int64) {},
			}
			sweep, err := prepare.SweepVocabulary(ctx, text, prepare.VocabularyOptions{
				Sizes: []int{512, 8192}, Width: 64, Train: tokenizer.TrainOptions{},
			})
			if err != nil {
				return nil, err
			}
			var list []Figure
			for i, name := range []string{"512 tokens", "8,192 tokens"} {
				p := sweep.Points[i]
				list = append(list, Figure{"fertility of " + name, p.Fertility, "tokens/word"},
					Figure{"length with " + name, float64(p.Tokens), "tokens"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			lower := f.Of("fertility of 8,192 tokens") < f.Of("fertility of 512 tokens")
			longer := f.Of("length with 8,192 tokens") > f.Of("length with 512 tokens")
			return choose(lower == longer, fmt.Sprintf("With a fertility of %s the text takes %s, with one of %s "+
				"it takes %s.",
				f.Text("fertility of 8,192 tokens"), f.Text("length with 8,192 tokens"),
				f.Text("fertility of 512 tokens"), f.Text("length with 512 tokens")))
		},
	}
}
