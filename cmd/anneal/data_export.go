package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"anneal/internal/units"
	"anneal/prepare"
	"anneal/tokenfile"
)

// tokenFiles explains the formats of data export and data import.
func tokenFiles() string {
	var b strings.Builder
	b.WriteString("\n\nFormats:\n")
	for _, f := range tokenfile.Formats {
		b.WriteString("\n    " + f.Name + strings.Repeat(" ", max(12-len(f.Name), 1)) + f.Help)
	}
	return b.String()
}

type dataExportCmd struct {
	Dir string `arg:"" help:"Directory of the data set."`
	Out string `arg:"" name:"out-dir" help:"Directory to write. It must be new or empty."`
	To  string `required:"" placeholder:"FORMAT" help:"nanogpt, llmc, megatron, olmo or datatrove."`
}

func (dataExportCmd) Help() string {
	return example("anneal data export data/go exports/go --to llmc") + tokenFiles()
}

func (c dataExportCmd) Run(s *session) error {
	format, err := tokenfile.Named(c.To)
	if err != nil {
		return asUsage(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		r, err := prepare.ExportData(ctx, c.Dir, c.Out, format, s.status.tokensProgress("exporting"))
		if err != nil {
			return asData(err)
		}
		if r.Prompts > 0 {
			s.notef("%s tokens are in prompts; %s files cannot mark them, so training on these files trains on the "+
				"prompts too", units.Commas(r.Prompts), format.Name)
		}
		elapsed := time.Since(start)
		s.closing(fmt.Sprintf("%s, %s tokens, as files of %s",
			units.Count(int(r.Documents), "document"), units.Commas(r.Tokens), r.Format), c.Out, elapsed, "")
		return s.emit(struct {
			prepare.ExportReport
			Out     string  `json:"out"`
			Seconds float64 `json:"seconds"`
		}{r, c.Out, elapsed.Seconds()})
	})
}

type dataImportCmd struct {
	Paths     []string `arg:"" name:"files-or-dir" help:"Token files in order, or a directory whose files are named as by anneal data export."`
	From      string   `required:"" placeholder:"FORMAT" help:"nanogpt, llmc, megatron, olmo or datatrove."`
	Tokenizer string   `required:"" placeholder:"FILE" help:"The tokenizer.json that the files were made with."`
	Out       string   `required:"" placeholder:"DIR" help:"Directory of the data set."`
	Val       float64  `default:"0.01" help:"Share of the documents to hold out for validation, if the directory has no validation files."`
	Replace   bool     `help:"Replace the data set in DIR, if there is one."`
	endOfTextFlag
}

func (dataImportCmd) Help() string {
	return example("anneal data import exports/go --from llmc --tokenizer tok.json --out data/go",
		"anneal data import my-corpus_text_document.idx --from megatron --tokenizer tok.json --out data/mine") +
		tokenFiles()
}

func (c dataImportCmd) Run(s *session) error {
	format, err := tokenfile.Named(c.From)
	if err != nil {
		return asUsage(err)
	}
	if err := checkVal(c.Val); err != nil {
		return err
	}
	tok, err := c.load(c.Tokenizer)
	if err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		m, unended, err := prepare.ImportData(ctx, prepare.ImportOptions{
			Format: format, Paths: c.Paths, Dir: c.Out, Replace: c.Replace, Tokenizer: tok, TokenizerPath: c.Tokenizer,
			ValFraction: c.Val,
			Progress:    s.status.tokensProgress("importing"),
		})
		if err != nil {
			return asData(err)
		}
		if unended == m.Train.Documents+m.Val.Documents {
			s.warn(fmt.Sprintf("no document ends with %s, the end of text of %s: the files were made without it, "+
				"with another tokenizer, or with another --end-of-text",
				tok.Token(m.Tokenizer.EOT), c.Tokenizer))
		}
		return s.emit(s.finishData(c.Out, m, tok, time.Since(start), nextOfData(c.Out, m.Train.Counts)))
	})
}
