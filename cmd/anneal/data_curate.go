package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anneal/corpus"
	"anneal/curate"
	"anneal/dedup"
	"anneal/internal/fileio"
	"anneal/internal/machine"
	"anneal/internal/units"
	"anneal/internal/yaml"
)

type dataCurateCmd struct {
	Pipeline    string   `arg:"" help:"The YAML file with the stages."`
	Paths       []string `arg:"" optional:"" name:"files-or-dirs" help:"Text, source trees, .jsonl, .parquet, .warc, .wet; also .gz and .zst."`
	Out         string   `placeholder:"DIR" help:"Directory for the kept documents, the journal and the report."`
	Ext         []string `placeholder:".go" help:"Take only files with these extensions from directories."`
	TextField   string   `default:"text" help:"Field with the text: a key of .jsonl lines, a column of .parquet, where a.b is field b within a."`
	DryRun      bool     `help:"Print what each rule would drop from a sample; write nothing."`
	Sample      count    `default:"1000" help:"Documents in a dry run, spread over the input."`
	Memory      autoSize `default:"auto" placeholder:"SIZE" help:"Memory of the whole command, such as 2GiB. Deduplication moves what does not fit to disk, with the same result. auto: as much as needed, plus 1 GiB for deduplication, within the available memory."`
	Split       byteSize `default:"16MiB" placeholder:"SIZE" help:"Size of one unit of work, in bytes on disk. Each unit becomes one output file. A crash loses at most one unit for each thread."`
	FromSignals string   `placeholder:"DIR" help:"Directory of an earlier curation with texts: true. Apply new thresholds to its measurements, without reading the input again."`
	lossFlags
	taskFlags
	threadsFlag
}

// defaultSample is --sample if it is not given.
const defaultSample = 1000

func (dataCurateCmd) Help() string {
	return `A pipeline is a list of stages. Each uses its published thresholds unless you set others:

    signals: true                # write every document's measurements to DIR/signals
    texts: true                  # and its cleaned text to DIR/texts, for --from-signals
    stages:
      - normalize
      - gopher_repetition
      - gopher_quality: {words: {min: 20}}
      - c4: {terminal_punctuation: false}
      - fineweb
      - dedup: {near: true, verify: 0.7}   # among all documents that reach this stage
      - pii

Stages: ` + strings.Join(curate.StageNames(), ", ") + `.

Documents keep their other fields (id, url, date, …). If the command is stopped, give it again: it continues where it stopped.

` + example("anneal data curate web.yaml --dry-run --sample 500 crawl/",
		"anneal data curate web.yaml --out clean crawl/",
		"anneal data build --tokenizer tok.json --out data/web clean/docs",
		"anneal data curate strict.yaml --from-signals clean --out strict",
		"sbatch --array=0-15 --wrap 'anneal data curate web.yaml --out clean crawl/'")
}

func (c dataCurateCmd) Run(s *session) error {
	if err := c.check(); err != nil {
		return err
	}
	task, err := c.tasks(os.Getenv)
	if err != nil && !c.DryRun {
		return err
	}
	text, err := fileio.ReadSmall(c.Pipeline, yaml.MaxBytes)
	if err != nil {
		return err
	}
	p, err := curate.Parse(text, c.Pipeline)
	if err != nil {
		return asUsage(err)
	}
	o := c.options(s, p)
	if !c.DryRun {
		if o.TaskIndex, o.TaskCount, o.Wait = task.index, task.count, c.Wait; task.count > 1 {
			s.notef("task %d of %d%s", task.index, task.count, task.from)
			o.Waiting = func(what string) { s.status.update(func(int) string { return "waiting for " + what }) }
		}
	}
	return s.untilSignal(func(ctx context.Context) error { return c.curate(ctx, s, o) })
}

// check refuses arguments that do not go together.
func (c dataCurateCmd) check() error {
	switch {
	case c.Out == "" && !c.DryRun:
		return &usageError{"curate needs --out, or --dry-run", "try --out clean"}
	case len(c.Paths) == 0 && c.FromSignals == "":
		return &usageError{"curate needs files or directories to read",
			"try anneal data curate web.yaml --out clean crawl/"}
	case len(c.Paths) > 0 && c.FromSignals != "":
		return &usageError{"--from-signals reads no input, but " + c.Paths[0] + " is given",
			"try it without " + c.Paths[0]}
	case !c.DryRun && c.Sample != defaultSample:
		return &usageError{"--sample needs --dry-run", "try --dry-run, or leave --sample out"}
	case c.DryRun && c.Sample < 1:
		return &usageError{"--sample is 0", "try --sample 1000"}
	}
	if info, err := os.Stat(c.Pipeline); err == nil && info.IsDir() {
		return &usageError{c.Pipeline + " is a directory; the first argument is the file with the stages",
			"try anneal data curate web.yaml --out clean " + c.Pipeline}
	}
	return nil
}

func (c dataCurateCmd) options(s *session, p *curate.Pipeline) curate.Options {
	o := curate.Options{
		Pipeline: p, Paths: c.Paths, Measured: c.FromSignals, Dir: c.Out, Workers: int(c.Threads),
		Memory: int64(c.Memory), Available: availableMemory(), Split: int64(c.Split),
		Read:     corpus.Options{Extensions: c.Ext, TextField: c.TextField},
		Progress: s.readProgress(),
	}
	if c.DryRun {
		o.Sample = int(c.Sample)
	}
	return o
}

// curate runs the pipeline within the memory that it may take, and reports what it did.
func (c dataCurateCmd) curate(ctx context.Context, s *session, o curate.Options) error {
	start := time.Now()
	memory, err := o.Plan()
	if room := (*machine.RoomError)(nil); errors.As(err, &room) {
		return err
	}
	if err != nil {
		return asUsage(err)
	}
	if c.Memory > 0 {
		defer limitHeap(memory.Heap())()
		s.notef("memory: %s", memory)
	} else if o.Available > 0 {
		defer limitHeap(memory.Heap() + max(machine.Most(o.Available)-memory.Total(), 0))()
	}
	out, err := curate.Run(ctx, o)
	if errors.Is(err, curate.ErrOtherPipeline) || errors.Is(err, curate.ErrForeign) ||
		errors.Is(err, fileio.ErrLocked) {
		return asUsage(err)
	}
	if errors.Is(err, curate.ErrWaited) {
		return &stopped{err.Error()}
	}
	if err != nil && ctx.Err() != nil && !c.DryRun {
		return &stopped{fmt.Sprintf("%v\n  finished work is kept: give the same command again to continue", err)}
	}
	if err != nil {
		return asData(err)
	}
	took, alone := time.Since(start), out.Resumed == 0 && o.TaskCount <= 1 // only then does the time cover all the work
	c.print(s, out, took, alone)
	v := map[string]any{
		"report": out.Report, "passes": out.Passes, "splits": out.Splits, "done": out.Done, "resumed": out.Resumed,
		"changed": out.Changed, "seconds": took.Seconds(),
	}
	if alone {
		v["mb_per_second"] = float64(out.Report.Bytes) / 1e6 / took.Seconds()
	}
	if c.DryRun {
		return s.finish(c.lossFlags, out.Report.Input, "", "give the same command again", v)
	}
	v["out"] = c.Out
	limit, marked := c.lossFlags, filepath.Join(c.Out, "report.json")
	if out.Done < out.Splits { // only the last task knows the share; every task reports a damaged file
		limit.MaxRejects, limit.Strict, marked = 1, false, ""
	}
	again, lost := "give the same command again", out.Report.Input.Lost
	if out.Passes == 1 || lost != nil && lost.FileCount > 0 { // otherwise the files between passes are gone
		again += ": only what changed is done again"
	}
	return s.finish(limit, out.Report.Input, marked, again, v)
}

func (c dataCurateCmd) print(s *session, out curate.Outcome, took time.Duration, alone bool) {
	r := out.Report
	if out.Changed > 0 {
		s.notef("done again because the input changed: %s", units.Count(out.Changed, "split"))
	}
	s.notef("%s", r.Input)
	if n := r.Input.Rejected(); n > 0 && !c.DryRun && out.Done == out.Splits {
		s.notef("  the whole list: %s", filepath.Join(c.Out, "rejects.jsonl"))
	}
	for _, stage := range r.Stages {
		if stage.Changed > 0 {
			s.printf("%-44s changed %s", stage.Name, units.Count(stage.Changed, "document"))
			if stage.BytesCut > 0 {
				s.printf(", removed %s", units.FormatSize(stage.BytesCut))
			}
			s.printf("\n")
		}
		for _, rule := range stage.Rules {
			if rule.Documents > 0 {
				s.printf("%-44s dropped %s, %.2f %%, %s\n", stage.Name+"."+rule.Name,
					units.Count(rule.Documents, "document"),
					100*float64(rule.Documents)/float64(max(r.Documents, 1)), units.FormatSize(rule.Bytes))
			}
		}
	}
	for i, d := range r.Comparisons {
		s.comparison(i, d)
	}
	kept := fmt.Sprintf("kept %s of %s, %s of %s of text", units.Commas(r.Kept), units.Count(r.Documents, "document"),
		units.FormatSize(r.KeptBytes), units.FormatSize(r.Bytes))
	if alone {
		kept += fmt.Sprintf(", %.1f MB/s", float64(r.Bytes)/1e6/took.Seconds())
	}
	if c.DryRun && len(r.Comparisons) > 0 {
		s.notef("deduplication saw the sample only; the whole input has more duplicates")
	}
	if out.Done == out.Splits || c.DryRun {
		s.tellLittleKept(r)
	}
	switch {
	case c.DryRun:
		s.closing(kept, "", took, c.next(r.Input, c.wholeRun()))
	case out.Done < out.Splits:
		s.closing(fmt.Sprintf("%d of %d splits are done; the last one writes the report", out.Done, out.Splits), "",
			took, "")
	default:
		s.printf("report: %s\n", filepath.Join(c.Out, "report.html"))
		s.closing(kept, c.Out, took, c.next(r.Input, command("anneal", "tokenizer",
			"train", "--vocab", "8192", "--out", "tok.json", filepath.Join(c.Out, "docs"))))
	}
}

// wholeRun is the command without --dry-run.
func (c dataCurateCmd) wholeRun() string {
	words := []string{"anneal", "data", "curate", operand(c.Pipeline), "--out", operand(cmp.Or(c.Out, "clean"))}
	if len(c.Ext) > 0 {
		words = append(words, "--ext", strings.Join(c.Ext, ","))
	}
	if c.TextField != "text" {
		words = append(words, "--text-field", c.TextField)
	}
	if c.FromSignals != "" {
		words = append(words, "--from-signals", c.FromSignals)
	}
	for _, path := range c.Paths {
		words = append(words, operand(path))
	}
	return command(words...)
}

// tellLittleKept warns if a pipeline drops most of its input; such a pipeline was often made for another kind of text.
func (s *session) tellLittleKept(r curate.Report) {
	little := r.LittleKept()
	if little == nil {
		return
	}
	s.warn(fmt.Sprintf("only %.2g %% of the documents and %.2g %% of the text are kept",
		100*little.Documents, 100*little.Bytes))
	s.notef("  %s drops most: %s, %.0f %% of all",
		little.Rule, units.Count(little.Dropped, "document"), 100*float64(little.Dropped)/float64(r.Documents))
	if little.Hint != "" {
		s.notef("  %s", little.Hint)
	}
}

// comparison prints what a dedup stage found.
func (s *session) comparison(i int, d dedup.Report) {
	s.warnOfNGrams(d, "ngram_mib of dedup")
	s.printf("dedup %d: %s of similar documents", i+1, units.Count(d.Clusters, "cluster"))
	if d.Clusters > 0 {
		s.printf(", the largest of %s", units.Commas(d.LargestSize))
	}
	if d.Candidates > 0 {
		s.printf("; confirmed %s of %s pairs", units.Commas(d.Confirmed), units.Commas(d.Candidates))
	}
	for _, u := range []dedup.Unit{dedup.Paragraph, dedup.Line} {
		if n := d.Units[u.String()]; n > 0 {
			s.printf("; %s", units.Count(n, "repeated "+u.String()))
		}
	}
	s.printf("\n")
}
