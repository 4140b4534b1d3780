package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"anneal/corpus"
	"anneal/curate"
	"anneal/dedup"
	"anneal/internal/fileio"
	"anneal/internal/yaml"
)

type dataCurateCmd struct {
	Pipeline    string   `arg:"" help:"The YAML file with the stages."`
	Paths       []string `arg:"" optional:"" name:"files-or-dirs" help:"Text, source trees, .jsonl, .parquet, .warc, .wet; also .gz and .zst."`
	Out         string   `placeholder:"DIR" help:"Directory of the kept documents, the journal and the report."`
	Ext         []string `placeholder:".go" help:"From directories take only files with these endings."`
	TextField   string   `default:"text" help:"Where the text is: the key in a line of .jsonl, the column of .parquet (a.b is b in a)."`
	DryRun      bool     `help:"Look at a sample and print what each rule would drop; write nothing."`
	Sample      count    `default:"1000" help:"Documents of a dry run, spread over the input."`
	Memory      byteSize `placeholder:"2GiB" help:"Memory of all; what documents are compared by goes to disk beyond it. The result is the same. By default what is needed, and 1 GiB to compare."`
	Split       byteSize `default:"16MiB" placeholder:"SIZE" help:"Input, on disk, that is done as one: what a dying process loses, and what tasks share out. It decides which documents stand in one file."`
	FromSignals string   `placeholder:"DIR" help:"Instead of reading input, hold changed bounds against what an earlier curation with texts: true has measured."`
	taskFlags
	threadsFlag
}

// defaultSample is --sample if it is not given.
const defaultSample = 1000

func (dataCurateCmd) Help() string {
	return `A pipeline is a list of stages, each with its published bounds, or with those that differ:

    signals: true                # keep every document's numbers, in DIR/signals
    texts: true                  # and its cleaned text, in DIR/texts, for --from-signals
    stages:
      - normalize
      - gopher_repetition
      - gopher_quality: {words: {min: 20}}
      - c4: {terminal_punctuation: false}
      - fineweb
      - dedup: {near: true, verify: 0.7}   # among all documents that come to it
      - pii

Stages: ` + strings.Join(curate.StageNames(), ", ") + `.

A stopped command goes on where it stopped when it is given again.

` + example("anneal data curate web.yaml --dry-run --sample 500 crawl/", "anneal data curate web.yaml --out clean crawl/",
		"anneal data build --tokenizer tok.json --out data/web clean/docs",
		"anneal data curate strict.yaml --from-signals clean --out strict",
		"sbatch --array=0-15 --wrap 'anneal data curate web.yaml --out clean crawl/'")
}

func (c dataCurateCmd) Run(s *session) error {
	switch {
	case c.Out == "" && !c.DryRun:
		return &usageError{"curate needs --out, or --dry-run", "try --out clean"}
	case len(c.Paths) == 0 && c.FromSignals == "":
		return &usageError{"curate needs files or directories to read", "try anneal data curate web.yaml --out clean crawl/"}
	case len(c.Paths) > 0 && c.FromSignals != "":
		return &usageError{"--from-signals reads no input, and " + c.Paths[0] + " is named", "try one of them"}
	case !c.DryRun && c.Sample != defaultSample:
		return &usageError{"--sample is for --dry-run, and all documents would be curated", "try --dry-run, or leave --sample out"}
	case c.DryRun && c.Sample < 1:
		return &usageError{"--sample 0 leaves nothing to look at", "try --sample 1000"}
	}
	task, err := c.tasks(os.Getenv)
	if err != nil && !c.DryRun {
		return err
	}
	if info, err := os.Stat(c.Pipeline); err == nil && info.IsDir() {
		return &usageError{c.Pipeline + " is a directory, where the file with the stages should be named", "try anneal data curate web.yaml --out clean " + c.Pipeline}
	}
	text, err := fileio.ReadSmall(c.Pipeline, yaml.MaxBytes)
	if err != nil {
		return err
	}
	p, err := curate.Parse(text, c.Pipeline)
	if err != nil {
		return asUsage(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		o := curate.Options{
			Pipeline: p, Paths: c.Paths, Measured: c.FromSignals, Dir: c.Out, Workers: int(c.Threads), Memory: int64(c.Memory), Split: int64(c.Split),
			Read:     corpus.Options{Extensions: c.Ext, TextField: c.TextField},
			Progress: s.readProgress(),
		}
		if c.DryRun {
			o.Sample = int(c.Sample)
		} else if o.TaskIndex, o.TaskCount, o.Wait = task.index, task.count, c.Wait; task.count > 1 {
			s.notef("task %d of %d%s", task.index, task.count, task.from)
			o.Waiting = func(what string) { s.status.update(func(int) string { return "waiting for " + what }) }
		}
		memory, err := o.Plan()
		if err != nil {
			return asUsage(err)
		}
		if c.Memory > 0 {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory.Heap()))
			s.notef("memory: %s", memory)
		}
		out, err := curate.Run(ctx, o)
		if errors.Is(err, curate.ErrOtherPipeline) || errors.Is(err, curate.ErrForeign) || errors.Is(err, fileio.ErrLocked) {
			return asUsage(err)
		}
		if ctx.Err() != nil && !c.DryRun {
			s.notef("what is done stays: the same command goes on behind it")
		}
		if errors.Is(err, curate.ErrWaited) {
			return &stopped{err.Error()}
		}
		if err != nil {
			return asData(err)
		}
		alone := out.Resumed == 0 && o.TaskCount <= 1 // the time is that of all the work
		rate := float64(out.Report.Bytes) / 1e6 / time.Since(start).Seconds()
		c.print(s, out)
		v := map[string]any{"report": out.Report, "passes": out.Passes, "splits": out.Splits, "done": out.Done, "resumed": out.Resumed, "changed": out.Changed}
		if alone {
			v["mb_per_second"] = rate
		}
		if !c.DryRun {
			v["out"] = c.Out
			if alone {
				s.printf("%s: %.1f MB/s\n", c.Out, rate)
			}
		}
		return s.emit(v)
	})
}

func (c dataCurateCmd) print(s *session, out curate.Outcome) {
	r := out.Report
	if out.Changed > 0 {
		s.notef("%d splits were done before from other content: done again", out.Changed)
	}
	if left := r.Left(); left != "" {
		if !c.DryRun && out.Done == out.Splits {
			left += "; all of them: " + filepath.Join(c.Out, "rejects.jsonl")
		}
		s.notef("%s", left)
	}
	for _, stage := range r.Stages {
		if stage.Changed > 0 {
			s.printf("%-44s changed %s documents, took out %s\n", stage.Name, thousands(int64(stage.Changed)), megabytes(max(stage.BytesCut, 0)))
		}
		for _, rule := range stage.Rules {
			if rule.Documents > 0 {
				s.printf("%-44s dropped %s documents, %.2f %%, %s\n", stage.Name+"."+rule.Name, thousands(int64(rule.Documents)),
					100*float64(rule.Documents)/float64(max(r.Documents, 1)), megabytes(rule.Bytes))
			}
		}
	}
	s.printf("kept %s of %s documents, %s of %s\n", thousands(int64(r.Kept)), thousands(int64(r.Documents)), megabytes(r.KeptBytes), megabytes(r.Bytes))
	if r.Kept == 0 && r.Documents > 0 {
		s.notef("nothing is kept: are these the bounds for this kind of text? The report shows what each rule dropped")
	}
	for i, d := range r.Comparisons {
		s.comparison(i, d)
	}
	switch {
	case c.DryRun && len(r.Comparisons) > 0:
		s.printf("documents were compared with the others of the sample only: in all there are more duplicates\n")
	case c.DryRun:
	case out.Done < out.Splits:
		s.printf("%d of %d splits are done; the report comes with the last one\n", out.Done, out.Splits)
	default:
		s.printf("report: %s\n", filepath.Join(c.Out, "report.html"))
	}
}

// comparison tells what a dedup stage has found.
func (s *session) comparison(i int, d dedup.Report) {
	s.warnOfNGrams(d, "ngram_mib of dedup")
	s.printf("dedup %d: %s clusters, the largest of %s documents", i+1, thousands(int64(d.Clusters)), thousands(int64(d.LargestSize)))
	if d.Candidates > 0 {
		s.printf("; confirmed %s of %s pairs", thousands(d.Confirmed), thousands(d.Candidates))
	}
	for _, u := range []dedup.Unit{dedup.Paragraph, dedup.Line} {
		if n := d.Units[u.String()]; n > 0 {
			s.printf("; %s repeated %ss", thousands(int64(n)), u)
		}
	}
	s.printf("\n")
}
