package lab

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/model"
	"anneal/prepare"
	"anneal/run"
	"anneal/train"
	"anneal/use"
)

// ImproveOptions are the options of Improve.
type ImproveOptions struct {
	Dir       string         // of the loop; round N has its files in round-N
	Config    *config.Config // of each round's run; its data.path has the seeds, and init.from the base
	Questions []Question
	Verify    Verifier
	Rounds    int // number of rounds after round 0, whose model is trained only on the seeds
	Samples   int // for each question; 0 means 1
	MaxTokens int // of an answer; 0 means the context
	Sampling  model.Sampling
	PromptEnd string // end of a document's prompt, as in the seeds' data set; "" if they have no prompts

	OnStage    func(text string)            // called with the name of each stage; may be nil
	OnSample   func(what string, n, of int) // progress of samples, from several goroutines; may be nil
	OnRound    func(Round)                  // called when a round has ended; may be nil
	OnProgress func(train.Event)            // of training; may be nil
}

// A Round is a turn of Improve.
type Round struct {
	Round int    `json:"round"`
	Run   string `json:"run,omitempty"` // directory of its model

	// verdicts on the samples of the previous round's model
	Judged
	Hinted   int `json:"hinted"`   // samples that were tries with a hint
	Helped   int `json:"helped"`   // of these, accepted
	Kept     int `json:"kept"`     // different accepted samples, which were added to the seeds
	HeldBack int `json:"left_out"` // questions whose prompts are held out to measure the model

	ValLoss  float64 `json:"-"` // of its model on the held-out seeds, nats per token; NaN without held-out seeds
	ValExact float64 `json:"-"` // share of held-out documents that are right as a whole; NaN unless train.eval_answers
}

// Judged counts samples by their verdicts.
type Judged struct {
	Sampled    int `json:"sampled"`
	Accepted   int `json:"accepted"`
	Rejected   int `json:"rejected"`
	Unfinished int `json:"unfinished"` // the model did not end the text; the verifier was not asked
	TimedOut   int `json:"timed_out"`
	Crashed    int `json:"crashed"`
}

// Share returns the share of samples that were accepted.
func (j Judged) Share() float64 { return float64(j.Accepted) / float64(max(j.Sampled, 1)) }

// String describes the samples that were not accepted.
func (j Judged) String() string {
	return fmt.Sprintf("%d rejected, %d unfinished, %d timed out, %d crashed", j.Rejected, j.Unfinished, j.TimedOut,
		j.Crashed)
}

// A Sample is an accepted answer.
type Sample struct {
	Prompt string `json:"prompt"`
	Answer string `json:"answer"`
	Hinted bool   `json:"hinted,omitempty"` // it was written with a hint before the prompt
}

// NothingAcceptedError means that a verifier accepted no sample, so there is nothing to train on.
type NothingAcceptedError struct {
	Round int
	Judged
}

func (e *NothingAcceptedError) Error() string {
	return fmt.Sprintf("round %d: the verifier accepted none of %d samples (%v), so there is nothing to learn from\n"+
		"  try more seeds, easier prompts or more --samples, and give the verifier a right answer by hand", e.Round,
		e.Sampled, e.Judged)
}

// Improve lets a model teach itself (STaR: Zelikman et al. 2022, arXiv 2203.14465): it trains a model on seeds, lets
// it answer questions, keeps the answers that the verifier accepts, trains a new model from the base on the seeds and
// the kept answers, and repeats. With hints this is the paper's rationalisation. A stopped loop continues: finished
// runs are not trained again, and judged rounds are not judged again. It returns the finished rounds, even if there is
// an error.
func Improve(ctx context.Context, o ImproveOptions) ([]Round, error) {
	l := loop{ImproveOptions: o}
	if err := l.open(); err != nil {
		return nil, err
	}
	var rounds []Round
	for n := range o.Rounds + 1 {
		r, err := l.round(ctx, n)
		if err != nil {
			return rounds, err
		}
		rounds = append(rounds, r)
		if o.OnRound != nil {
			o.OnRound(r)
		}
	}
	return rounds, nil
}

// loop is the state of an Improve.
type loop struct {
	ImproveOptions
	seeds, heldOut [][]byte // documents
	corpus         *prepare.Corpus
	heldBack       int
}

// open reads the seeds, and leaves out the questions that are held out.
func (l *loop) open() (err error) {
	if l.Config.Data.Mix.Given() || l.Config.Data.Path == "" {
		return config.Problem{Key: "data.path", Message: "the seeds are one data set", Try: "data.path=DIR"}
	}
	if l.corpus, err = prepare.OpenCorpus(l.Config.Clone()); err != nil {
		return err
	}
	defer l.corpus.Close()
	set := l.corpus.First
	if set.Manifest.Train.PromptTokens > 0 && l.PromptEnd == "" {
		return config.Problem{
			Message: fmt.Sprintf("the documents of %s have prompts, which are not trained on", set.Dir),
			Try:     "--prompt-end with the text that the data set was built with",
		}
	}
	if l.seeds, err = l.texts(set.Documents(false)); err != nil {
		return &dataset.Error{Err: err}
	}
	if l.heldOut, err = l.texts(set.Documents(true)); err != nil {
		return &dataset.Error{Err: err}
	}
	all, held := len(l.Questions), l.heldPrompts()
	l.Questions = slices.DeleteFunc(slices.Clone(l.Questions), func(q Question) bool { return held(q.Prompt) })
	if l.heldBack = all - len(l.Questions); len(l.Questions) == 0 {
		return &dataset.Error{Err: fmt.Errorf("all prompts are held out in %s to measure the model", set.Dir)}
	}
	return nil
}

// heldPrompts returns a function that reports whether a held-out document begins with a prompt: with exactly this one,
// if documents have the end of a prompt.
func (l *loop) heldPrompts() func(prompt string) bool {
	var begin []string
	for _, d := range l.heldOut {
		prompt, _, ok := strings.Cut(string(d), l.PromptEnd)
		switch {
		case l.PromptEnd == "":
			begin = append(begin, string(d))
		case ok:
			begin = append(begin, prompt+l.PromptEnd)
		}
	}
	slices.Sort(begin)
	return func(prompt string) bool {
		i, exact := slices.BinarySearch(begin, prompt)
		return exact || l.PromptEnd == "" && prompt != "" && i < len(begin) && strings.HasPrefix(begin[i], prompt)
	}
}

// texts decodes documents.
func (l *loop) texts(docs iter.Seq2[[]uint32, error]) (list [][]byte, err error) {
	for ids, err := range docs {
		if err != nil {
			return nil, err
		}
		list = append(list, l.corpus.Tokenizer.Decode(nil, ids))
	}
	return list, nil
}

// file returns the path of a file or directory of a round.
func (l *loop) file(round int, name string) string {
	return filepath.Join(l.Dir, fmt.Sprintf("round-%d", round), name)
}

// round makes the data of a round from the texts of the previous model, and trains its model.
func (l *loop) round(ctx context.Context, n int) (Round, error) {
	r := Round{Round: n}
	cfg := l.Config.Clone()
	if n > 0 {
		var err error
		if r, err = l.learnt(ctx, n); err != nil {
			return r, err
		}
		cfg.SetSources([]config.Source{{Path: l.file(n, "data")}})
	}
	r.Run, r.HeldBack = l.file(n, "run"), l.heldBack
	l.stage("round %d: training", n)
	result, err := Finish(ctx, run.Options{Config: cfg, Dir: r.Run, OnProgress: l.OnProgress})
	switch {
	case err != nil:
		return r, fmt.Errorf("round %d: %w", n, err)
	case result.Interrupted:
		return r, context.Cause(ctx)
	}
	r.ValLoss, r.ValExact = result.ValLoss, result.ValExact
	return r, nil
}

func (l *loop) stage(format string, args ...any) {
	if l.OnStage != nil {
		l.OnStage(fmt.Sprintf(format, args...))
	}
}

// learnt makes the data of a round unless it exists; round.json is written last.
func (l *loop) learnt(ctx context.Context, n int) (r Round, err error) {
	path := l.file(n, "round.json")
	text, err := fileio.ReadSmall(path, 1<<20)
	if err == nil {
		if err := json.Unmarshal(text, &r); err != nil {
			return r, &dataset.Error{Err: fmt.Errorf("%s: %w\n  remove it to judge the round again", path, err)}
		}
		return r, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	kept, r, err := l.judge(ctx, n)
	if err != nil {
		return r, err
	}
	if len(kept) == 0 {
		return r, &NothingAcceptedError{Round: n, Judged: r.Judged}
	}
	if err := l.write(ctx, n, kept); err != nil {
		return r, err
	}
	text, err = json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = fileio.Write(path, func(w io.Writer) error {
			_, err := w.Write(append(text, '\n'))
			return err
		})
	}
	return r, err
}

// judge lets the model of the round before n answer the questions, and returns the samples that the verifier accepts.
func (l *loop) judge(ctx context.Context, n int) (kept []Sample, r Round, err error) {
	r = Round{Round: n}
	trained, err := use.Open(l.file(n-1, "run"), l.Config.Threads)
	if err != nil {
		return nil, r, err
	}
	defer trained.Close()
	var tries []Question
	for _, q := range l.Questions {
		tries = append(tries, slices.Repeat([]Question{{Prompt: q.Prompt}}, max(l.Samples, 1))...)
	}
	verdicts, samples, err := l.try(ctx, trained, n, tries, &r.Judged)
	if err != nil {
		return nil, r, err
	}
	known := map[Sample]bool{}
	answered := map[string]bool{}
	keep := func(s Sample) {
		if k := (Sample{Prompt: s.Prompt, Answer: s.Answer}); !known[k] {
			known[k] = true
			kept = append(kept, s)
		}
	}
	for i, s := range samples {
		if verdicts[i] == Accepted {
			answered[s.Prompt] = true
			keep(s)
		}
	}
	var again []Question
	for _, q := range l.Questions {
		if q.Hint != "" && !answered[q.Prompt] {
			again = append(again, q)
		}
	}
	helped := Judged{}
	if verdicts, samples, err = l.try(ctx, trained, n, again, &helped); err != nil {
		return nil, r, err
	}
	for i, s := range samples {
		if verdicts[i] == Accepted {
			keep(s)
		}
	}
	r.Hinted, r.Helped, r.Kept = helped.Sampled, helped.Accepted, len(kept)
	return kept, r, nil
}

// unfinished is the verdict on a sample that the model did not end.
const unfinished Verdict = -1

// try lets a model answer questions, with their hints, and the verifier judge the answers, without them.
func (l *loop) try(ctx context.Context, trained *use.Trained, n int, questions []Question,
	count *Judged) ([]Verdict, []Sample, error) {
	if len(questions) == 0 {
		return nil, nil, nil
	}
	prompts := make([]string, len(questions))
	for i, q := range questions {
		prompts[i] = q.Hint + q.Prompt
	}
	l.stage("round %d: answering %d prompts", n, len(prompts))
	o := use.GenerateOptions{MaxTokens: cmp.Or(l.MaxTokens, trained.Context()), Sampling: l.Sampling}
	o.Seed += uint64(n) << 32
	texts, err := trained.GenerateMany(ctx, prompts, o, l.progress("answered", len(prompts)))
	if err != nil {
		return nil, nil, fmt.Errorf("round %d: %w", n, err)
	}
	l.stage("round %d: verifying %d answers", n, len(prompts))
	verdicts, samples := make([]Verdict, len(texts)), make([]Sample, len(texts))
	verified := l.progress("verified", len(prompts))
	var done atomic.Int64
	err = Together(ctx, len(texts), 0, func(ctx context.Context, i int) (err error) {
		samples[i] = Sample{questions[i].Prompt, texts[i].Text, questions[i].Hint != ""}
		if verdicts[i] = unfinished; texts[i].Ended {
			verdicts[i], err = l.Verify(ctx, samples[i].Prompt, samples[i].Answer)
		}
		verified(int(done.Add(1)))
		return err
	})
	for _, v := range verdicts {
		count.add(v)
	}
	return verdicts, samples, err
}

// progress calls OnSample.
func (l *loop) progress(what string, of int) func(int) {
	return func(n int) {
		if l.OnSample != nil {
			l.OnSample(what, n, of)
		}
	}
}

func (j *Judged) add(v Verdict) {
	j.Sampled++
	*map[Verdict]*int{
		Accepted: &j.Accepted, Rejected: &j.Rejected, unfinished: &j.Unfinished, TimedOut: &j.TimedOut,
		Crashed: &j.Crashed,
	}[v]++
}

// write writes the kept samples, both as they are and as a data set together with the seeds.
func (l *loop) write(ctx context.Context, n int, kept []Sample) error {
	path := l.file(n, "kept.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	docs := slices.Clone(l.seeds)
	for _, s := range kept {
		docs = append(docs, []byte(s.Prompt+s.Answer))
	}
	err := fileio.Write(path, func(w io.Writer) error {
		lines := bufio.NewWriter(w)
		e := json.NewEncoder(lines)
		e.SetEscapeHTML(false)
		for _, s := range kept {
			if err := e.Encode(s); err != nil {
				return err
			}
		}
		return lines.Flush()
	})
	if err != nil {
		return err
	}
	tok := l.corpus.Tokenizer
	o := dataset.BuildOptions{
		Dir: l.file(n, "data"), Replace: true, Tokenizer: prepare.DatasetTokenizer(tok, l.corpus.TokenizerPath),
		TokenizerFile: tok, TokenizerConfig: tok.ConfigJSON(), PromptEnd: l.PromptEnd,
		NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
	}
	if len(l.heldOut) > 0 {
		o.HeldOut = each(l.heldOut)
	}
	if _, err := dataset.Build(ctx, o, each(docs)); err != nil {
		return &dataset.Error{Err: err}
	}
	return nil
}

// each yields documents in the form that Build needs.
func each(docs [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}
