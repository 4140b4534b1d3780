package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"anneal/dataset"
	"anneal/internal/units"
	"anneal/prepare"
	"anneal/tokenizer"
)

type dataCmd struct {
	Curate     dataCurateCmd     `cmd:"" help:"Filter and clean text with a pipeline, and report what each rule drops."`
	Dedup      dataDedupCmd      `cmd:"" help:"Drop repeated documents, paragraphs and lines."`
	Classifier dataClassifierCmd `cmd:"" help:"Train and use classifiers of language and quality."`
	Sample     dataSampleCmd     `cmd:"" help:"Make a data set from the Go standard library's source, to try anneal with."`
	Synth      dataSynthCmd      `cmd:"" help:"Make synthetic texts for studies: sums, facts, additions, secrets."`
	Build      dataBuildCmd      `cmd:"" help:"Tokenise text into shards for training."`
	Import     dataImportCmd     `cmd:"" help:"Make a data set from the token files of nanoGPT, llm.c, Megatron, OLMo or datatrove."`
	Export     dataExportCmd     `cmd:"" help:"Write a data set as the token files of nanoGPT, llm.c, Megatron, OLMo or datatrove."`
	Score      dataScoreCmd      `cmd:"" help:"Score documents by how hard or how good they are, for data.order."`
	Mix        dataMixCmd        `cmd:"" help:"Show how often a run would read each of several data sets."`
	Inspect    dataInspectCmd    `cmd:"" help:"Show the number and lengths of documents, and how each packing would use them."`
	Verify     dataVerifyCmd     `cmd:"" help:"Check every byte of a data set, and its tokenizer."`
}

type dataBuildCmd struct {
	textArgs
	lossFlags
	Tokenizer string  `required:"" placeholder:"FILE" help:"The tokenizer.json to use."`
	Out       string  `required:"" placeholder:"DIR" help:"Directory of the data set."`
	Val       float64 `default:"0.01" help:"Share of the documents to hold out for validation. 1: all, for a set that is only for evaluation."`
	PromptEnd string  `placeholder:"TEXT" help:"Text at which a document's prompt ends. The prompt, including this text, is read but not trained on."`
	Special   bool    `help:"Encode the names of special tokens in the text, such as <|user|>, as the tokens themselves. For text you trust."`
	Replace   bool    `help:"Replace the data set in DIR, if there is one; it comes back if the build fails."`
	endOfTextFlag
	threadsFlag
}

func (dataBuildCmd) Help() string {
	return example("anneal data build --tokenizer tok.json --out data/go --ext .go src/",
		"anneal data build --tokenizer tok.json --out data/chat --prompt-end '### Answer:' chats.jsonl")
}

func (c dataBuildCmd) Run(s *session) error {
	if err := checkVal(c.Val); err != nil {
		return err
	}
	tok, err := c.load(c.Tokenizer)
	if err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		m, report, err := prepare.BuildData(ctx, c.text(s, "tokenising"), prepare.DataOptions{
			Dir: c.Out, Replace: c.Replace, Tokenizer: tok, TokenizerPath: c.Tokenizer, PromptEnd: c.PromptEnd,
			Special: c.Special, ValFraction: c.Val, Threads: int(c.Threads), Warn: s.warn,
		})
		if err != nil {
			return asData(err)
		}
		s.reportText(report)
		elapsed := time.Since(start)
		rate := float64(report.Bytes) / 1e6 / elapsed.Seconds()
		s.printf("read %s of text, %.1f MB/s\n", units.FormatSize(report.Bytes), rate)
		result := s.finishData(c.Out, m, tok, elapsed, c.next(report, nextOfData(c.Out, m.Train.Counts)))
		result["corpus"], result["mb_per_second"] = report, rate
		return s.finish(c.lossFlags, report, filepath.Join(c.Out, "dataset.json"),
			"give the same command again with --replace", result)
	})
}

// tinySample is the tokens of a sample of examples/tiny.yaml.
const tinySample = 257

// trainExample begins a command that trains on new data: by the example where it is, else by a budget.
func trainExample() []string {
	const example = "examples/tiny.yaml"
	if _, err := os.Stat(example); err != nil {
		return []string{"anneal", "train", "--budget", "10m"}
	}
	return []string{"anneal", "train", example}
}

// nextOfData returns a command that trains on a data set with this training split, "" if it is too small for the
// example.
func nextOfData(dir string, train dataset.Counts) string {
	switch {
	case train.Tokens == 0:
		return "anneal eval RUN " + command("--data", dir)
	case train.Tokens < tinySample:
		return ""
	}
	return command(append(trainExample(), "data.path="+dir, "--out", "runs/"+nameOf(dir))...)
}

// finishData prints what a new data set holds, and returns the same for the JSON object.
func (s *session) finishData(dir string, m dataset.Manifest, tok *tokenizer.Tokenizer, elapsed time.Duration,
	next string) map[string]any {
	s.printSplit("train", m.Train.Counts)
	s.printSplit("val", m.Val.Counts)
	end := string(tok.Token(m.Tokenizer.EOT))
	s.printf("end of text: %s, token %s of %s\n",
		end, units.Commas(int64(m.Tokenizer.EOT)), units.Commas(int64(m.Tokenizer.VocabSize)))
	remarks := []string{}
	if remark := prepare.RemarkHeldOut(m); remark != "" {
		s.warn(remark)
		remarks = append(remarks, remark)
	}
	s.closing("a data set of "+units.Commas(m.Train.Tokens+m.Val.Tokens)+" tokens", dir, elapsed, next)
	return map[string]any{
		"out": dir, "seconds": elapsed.Seconds(), "train": m.Train.Counts, "val": m.Val.Counts,
		"vocab_size": m.Tokenizer.VocabSize,
		"remarks":    remarks, "end_of_text": map[string]any{"token": end, "id": m.Tokenizer.EOT},
	}
}

func checkVal(share float64) error {
	if !(share >= 0 && share <= 1) {
		return &usageError{fmt.Sprintf("--val %v is not a share from 0 to 1", share),
			"try --val 0.01, or --val 1 to hold all of it out"}
	}
	return nil
}

func (s *session) printSplit(name string, c dataset.Counts) {
	s.printf("%-6s %s, %s tokens, %.2f bytes/token\n",
		name, units.Count(int(c.Documents), "document"), units.Commas(c.Tokens),
		float64(c.TextBytes)/float64(max(c.Tokens, 1)))
	if c.PromptTokens > 0 {
		s.printf("       %s of the tokens are in prompts: read, not trained on\n", units.Commas(c.PromptTokens))
	}
}

type dataVerifyCmd struct {
	Dir string `arg:"" help:"Directory of the data set."`
}

func (dataVerifyCmd) Help() string { return example("anneal data verify data/go") }

func (c dataVerifyCmd) Run(s *session) error {
	start := time.Now()
	d, err := dataset.Open(c.Dir)
	if err != nil {
		return asData(err)
	}
	defer d.Close()
	if err := d.Verify(); err != nil {
		return asData(err)
	}
	if _, err := prepare.OpenTokenizer(d); err != nil {
		return teachTokenizer(err)
	}
	s.printSplit("train", d.Manifest.Train.Counts)
	s.printSplit("val", d.Manifest.Val.Counts)
	s.closing("every byte checked", "", time.Since(start), "")
	return s.emit(map[string]any{
		"ok": true, "train": d.Manifest.Train.Counts, "val": d.Manifest.Val.Counts, "fingerprint": d.Fingerprint(),
	})
}
