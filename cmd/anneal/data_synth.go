package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"anneal/internal/units"
	"anneal/prepare/synth"
)

type dataSynthCmd struct {
	Modular  synthModularCmd  `cmd:"" help:"Sums modulo a number: the text of grokking."`
	Facts    synthFactsCmd    `cmd:"" help:"Random facts, to measure how much a model can hold."`
	Addition synthAdditionCmd `cmd:"" help:"Sums or differences, with or without their steps."`
	Canaries synthCanariesCmd `cmd:"" help:"Secrets in a text of random words, 1 to 64 times each."`
}

// synthFlags are the flags of all synthetic texts.
type synthFlags struct {
	Seed    uint64 `default:"1" placeholder:"N" help:"Seed of the text."`
	Out     string `required:"" placeholder:"DIR" help:"Directory of the data set."`
	Replace bool   `help:"Replace the data set in DIR, if there is one."`
}

type synthModularCmd struct {
	P        int     `default:"47" name:"p" placeholder:"P" help:"Sums are modulo P, 2 to 62."`
	Fraction float64 `default:"0.4" placeholder:"SHARE" help:"Share of the P² sums to train on; the others are held out."`
	synthFlags
}

func (synthModularCmd) Help() string {
	return example("anneal data synth modular --out data/modular", "anneal data synth modular --p 31 --fraction 0.5 "+
		"--out data/modular31") + "\n\nA number is one byte: 0–9, A–Z, a–z. The model is trained on what follows the =."
}

func (c synthModularCmd) Run(s *session) error {
	t, err := synth.Modular{P: c.P, Fraction: c.Fraction, Seed: c.Seed}.Text()
	return c.build(s, t, err)
}

type synthFactsCmd struct {
	Facts count `default:"1024" placeholder:"N" help:"Number of facts, 1 to 3,844."`
	synthFlags
}

func (synthFactsCmd) Help() string {
	return example("anneal data synth facts --facts 512 --out data/facts") +
		"\n\nA fact is a key of two bytes and six random digits. Nothing is held out, since there is nothing to infer."
}

func (c synthFactsCmd) Run(s *session) error {
	t, err := synth.Facts{Facts: int(c.Facts), Seed: c.Seed}.Text()
	return c.build(s, t, err)
}

type synthAdditionCmd struct {
	Digits     int   `default:"3" placeholder:"N" help:"Digits of the numbers, 1 to 6."`
	Examples   count `default:"20000" placeholder:"N" help:"Examples to train on."`
	Val        count `default:"1000" placeholder:"N" help:"Examples to hold out."`
	Subtract   bool  `help:"Differences instead of sums; needs --modulo."`
	Modulo     bool  `help:"Give answers as many digits as the numbers have, without the last carry."`
	Scratchpad bool  `help:"Write the steps before the answer."`
	synthFlags
}

func (synthAdditionCmd) Help() string {
	return example("anneal data synth addition --digits 3 --out data/sums", "anneal data synth addition --scratchpad "+
		"--examples 300 --out data/steps") + "\n\nThe digits of an answer are reversed, because carries move that " +
		"way. The model is trained on what follows the =. No example occurs twice."
}

func (c synthAdditionCmd) Run(s *session) error {
	t, err := synth.Addition{
		Digits: c.Digits, Subtract: c.Subtract, Modulo: c.Modulo, Scratchpad: c.Scratchpad, Train: int(c.Examples),
		Val: int(c.Val), Seed: c.Seed,
	}.Text()
	return c.build(s, t, err)
}

type synthCanariesCmd struct {
	Documents count `default:"20000" placeholder:"N" help:"Documents of random words."`
	Each      count `default:"20" placeholder:"N" help:"Secrets for each number of copies: 1, 2, 4 … 64."`
	synthFlags
}

func (synthCanariesCmd) Help() string {
	return example("anneal data synth canaries --out data/canaries") +
		"\n\nA secret is a key of four bytes, = and eight random digits. Nothing is held out."
}

func (c synthCanariesCmd) Run(s *session) error {
	t, err := synth.Canaries{
		Background: int(c.Documents), Each: int(c.Each), Copies: []int{1, 2, 4, 8, 16, 32, 64}, Seed: c.Seed,
	}.Text()
	return c.build(s, t, err)
}

// synthBatch is the number of documents in a training step of the command that data synth proposes.
const synthBatch = 256

// build makes the data set of a text; if err is not nil, the text could not be made.
func (f synthFlags) build(s *session, t synth.Text, err error) error {
	if err != nil {
		return &usageError{err.Error(), "see --help"}
	}
	start := time.Now()
	return s.untilSignal(func(ctx context.Context) error {
		m, err := t.Build(ctx, f.Out, f.Replace)
		if err != nil {
			return asData(err)
		}
		asked := filepath.Join(f.Out, "tasks")
		items, err := t.WriteTasks(asked)
		if err != nil {
			return asData(err)
		}
		s.printf("a document: %s\n", t.Train[0])
		s.printSplit("train", m.Train.Counts)
		s.printSplit("val", m.Val.Counts)
		if items > 0 {
			s.printf("%s: %s for eval.tasks\n", asked, units.Count(items, "question"))
		}
		elapsed := time.Since(start)
		longest := 0 // tokens of a document, including its end token
		for _, doc := range t.Train {
			longest = max(longest, len(doc)+1)
		}
		s.closing(fmt.Sprintf("a data set of %s tokens", units.Commas(m.Train.Tokens+m.Val.Tokens)), f.Out, elapsed,
			command(append(trainExample(), "data.path="+f.Out, "data.packing=pad",
				fmt.Sprintf("model.context=%d", longest), fmt.Sprintf("train.batch_tokens=%d", synthBatch*longest),
				"train.eval_answers=true", "--out", "runs/"+nameOf(f.Out))...))
		return s.emit(map[string]any{
			"out": f.Out, "train": m.Train.Counts, "val": m.Val.Counts, "document_tokens": longest,
			"example": t.Train[0], "tasks": items,
			"seconds": elapsed.Seconds(),
		})
	})
}
