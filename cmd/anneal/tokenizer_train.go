package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"anneal/internal/fileio"
	"anneal/internal/machine"
	"anneal/internal/units"
	"anneal/prepare"
	"anneal/tokenizer"
)

type tokenizerTrainCmd struct {
	textArgs
	lossFlags
	Vocab int     `required:"" placeholder:"N" help:"Size of the vocabulary: 256 bytes, the special tokens, and merges."`
	Out   outFile `required:"" placeholder:"FILE" example:"tokenizer.json" help:"The tokenizer.json to write; - is standard output."`
	learnFlags
}

func (tokenizerTrainCmd) Help() string {
	return example(
		"anneal tokenizer train --vocab 8192 --out tok.json --ext .go src/",
		"anneal tokenizer train --vocab 65536 --pattern o200k --memory 2GiB --out tok.json crawl/",
	)
}

// learnFlags say how a vocabulary is learned.
type learnFlags struct {
	Pattern string   `default:"llama3" help:"How text is split before merging: gpt2, cl100k, llama3, qwen2, nanochat, o200k, or a regular expression."`
	Special []string `default:"<|endoftext|>" help:"Special tokens. The first ends a document."`
	Memory  autoSize `default:"auto" placeholder:"SIZE" help:"Memory of the command, such as 2GiB; at least 64 MiB. Counts that do not fit go to disk. If there are more distinct words than fit, the rarest are dropped. auto: the available memory, and no word is dropped."`
	TempDir string   `placeholder:"DIR" help:"Directory for the counts on disk. Default: the system's directory for temporary files."`
	KeepAll bool     `help:"Fail instead of dropping the rarest words if there is too little memory."`
	threadsFlag
}

// leastLearnMemory is the smallest --memory: the program, the current texts and some words.
const leastLearnMemory = 64 << 20

// options returns the options of the tokenizer package and the bytes that the heap may hold. Training fills learned.
func (c learnFlags) options(s *session,
	learned *tokenizer.TrainReport) (o tokenizer.TrainOptions, heap int64, err error) {
	o = tokenizer.TrainOptions{
		Pattern: c.Pattern, Special: c.Special, Threads: int(c.Threads), TempDir: c.TempDir, KeepAll: c.KeepAll,
		Report: learned,
		Progress: func(p tokenizer.Progress) {
			switch p.Phase {
			case "sort":
				s.status.update(func(int) string { return "merging the counts that went to disk" })
			case "merge":
				s.status.update(func(int) string {
					return fmt.Sprintf("merging  %s of %s", units.Commas(p.Merges), units.Commas(p.Total))
				})
			}
		},
	}
	if c.Memory > 0 && c.Memory < leastLearnMemory {
		return o, 0, &usageError{fmt.Sprintf("--memory %s is too little", memorySize(int64(c.Memory))),
			"try --memory 256MiB, or at least 64MiB"}
	}
	available := availableMemory()
	if err := machine.Room(available, machine.Part{
		What: "learning", Bytes: cmp.Or(int64(c.Memory), leastLearnMemory), Flag: "--memory",
	}); err != nil {
		return o, 0, err
	}
	all := int64(c.Memory)
	switch {
	case all == 0 && available == 0:
		return o, math.MaxInt64, nil
	case all == 0:
		all = max(machine.Most(available), leastLearnMemory)
		o.KeepAll = true // the vocabulary must not depend on the machine's memory
	}
	heap = all - programMemory
	o.Memory = heap * 3 / 4 // the rest is for the current texts
	return o, heap, nil
}

// teachMemory rewrites an error about too little memory in terms of the flags.
func (c learnFlags) teachMemory(err error) error {
	var e *tokenizer.MemoryError
	if !errors.As(err, &e) {
		return asData(err)
	}
	if need := e.Need*4/3 + programMemory; c.Memory == 0 {
		return &machine.RoomError{
			Available: availableMemory(), Parts: []machine.Part{{What: fmt.Sprintf("learning from %s distinct words",
				units.Commas(e.Words)), Bytes: need}}, Try: "--memory SIZE, which drops the rarest words",
		}
	}
	enough := fmt.Sprintf("--memory %dMiB", (e.Need*4/3+programMemory)>>20+1)
	if c.KeepAll && e.Below > 0 {
		enough += fmt.Sprintf(", or leave out --keep-all: then words that occur fewer than %d times are dropped",
			e.Below)
	}
	return &usageError{fmt.Sprintf("%s distinct words are too many to learn from with --memory %dMiB",
		units.Commas(e.Words), int64(c.Memory)>>20), "try " + enough}
}

// reportDropped reports the words that were dropped for lack of memory.
func (s *session) reportDropped(learned tokenizer.TrainReport) {
	if d := learned.Dropped; d.Below > 0 {
		s.notef("too little memory for all words: dropped %s of %s distinct words, which occur fewer than %d times "+
			"(%.2f%% of the text)",
			units.Commas(d.Words), units.Commas(learned.Words), d.Below, 100*float64(d.Bytes)/float64(learned.Bytes))
	}
}

// unread returns the output for corpus.Options.Out: a file by its path, but not standard output, called -.
func (f outFile) unread() string {
	if fileio.IsStdout(string(f)) {
		return ""
	}
	return string(f)
}

func (c tokenizerTrainCmd) Run(s *session) error {
	var learned tokenizer.TrainReport
	o, heap, err := c.options(s, &learned)
	if err != nil {
		return err
	}
	if _, err := tokenizer.Load(string(c.Out)); err != nil { // an earlier tokenizer is not text, and is replaced
		if err := c.spares("--out", c.Out); err != nil {
			return err
		}
	}
	text := c.text(s, "counting")
	if text.Options.Out = c.Out.unread(); text.Options.Out != "" {
		text.Options.Skip = tokenizer.Files(text.Options.Out)
	}
	defer limitHeap(heap)()
	o.VocabSize = c.Vocab
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		tok, report, err := prepare.TrainTokenizer(ctx, text, o)
		if err != nil {
			return c.teachMemory(err)
		}
		if err := tok.Save(string(c.Out)); err != nil {
			return err
		}
		s.reportText(report)
		s.reportDropped(learned)
		if n := tok.VocabSize(); n < c.Vocab {
			s.notef("this text yields %s tokens, not the %s of --vocab: its words have no pairs left to merge",
				units.Commas(n), units.Commas(c.Vocab))
		}
		elapsed := time.Since(start)
		rate := float64(report.Bytes) / 1e6 / elapsed.Seconds()
		s.printf("%s distinct words in %s, %.1f MB/s; pattern %s, hash %.16s…\n",
			units.Commas(learned.Words), units.FormatSize(report.Bytes), rate, tok.Pattern(), tok.Hash())
		next := c.Out.next("anneal data build --tokenizer",
			command(append([]string{"--out", "data/" + nameOf(c.Paths[0])}, c.words()...)...))
		s.closing("a tokenizer of "+units.Commas(tok.VocabSize())+" tokens",
			c.Out.String(), elapsed, c.next(report, next))
		return s.finish(c.lossFlags, report, "", "give the same command again", map[string]any{
			"out": c.Out, "seconds": elapsed.Seconds(), "vocab_size": tok.VocabSize(), "pattern": tok.Pattern(),
			"hash": tok.Hash(), "corpus": report, "mb_per_second": rate,
			"learned": learned,
		})
	})
}
