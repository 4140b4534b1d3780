package main

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"

	"anneal/comm"
	"anneal/internal/isa"

	"github.com/alecthomas/kong"
)

// cli is the grammar of the command line.
type cli struct {
	JSON  bool `name:"json" help:"Print one JSON object on standard output at the end; text for people goes to standard error."`
	Quiet bool `name:"quiet" short:"q" help:"Print results, warnings and errors only: no progress, no remarks."`

	Init      initCmd      `cmd:"" help:"Write a commented config for this machine and a text."`
	Demo      demoCmd      `cmd:"" help:"Train a small model on the Go standard library's source and print samples."`
	Tokenizer tokenizerCmd `cmd:"" help:"Train and use tokenizers."`
	Data      dataCmd      `cmd:"" help:"Turn text into token shards."`
	Recipe    recipeCmd    `cmd:"" help:"List and print configs of published models."`
	Attention attentionCmd `cmd:"" help:"Draw attention patterns."`
	Parallel  parallelCmd  `cmd:"" help:"Show how ranks share the work of a run."`
	LRFind    lrFindCmd    `cmd:"" name:"lr-find" help:"Try a range of learning rates and suggest the best."`
	Mix       mixCmd       `cmd:"" name:"mix" help:"Find the best shares of several data sets, with small models."`
	Mup       mupCmd       `cmd:"" name:"mup" help:"Check muP, and find the learning rate that suits every width."`
	Scaling   scalingCmd   `cmd:"" name:"scaling" help:"Fit scaling laws, and predict losses and the best model sizes with them."`
	Plan      planCmd      `cmd:"" help:"Predict time, memory and cost of a large run, and find its best mesh."`
	Train     trainCmd     `cmd:"" help:"Start a training run."`
	Resume    resumeCmd    `cmd:"" help:"Continue a run that was stopped."`
	Branch    branchCmd    `cmd:"" help:"Start a run from a checkpoint of another run, such as a decay from its stable phase."`
	Rewind    rewindCmd    `cmd:"" help:"Take a run back to an earlier step, and skip batches."`
	Lab       labCmd       `cmd:"" help:"Measure what a change is worth, and repeat the studies of the literature."`
	Improve   improveCmd   `cmd:"" help:"Train a model on those of its own answers that a program accepts."`
	Generate  generateCmd  `cmd:"" help:"Continue a text with a trained model."`
	Serve     serveCmd     `cmd:"" help:"Serve completions over HTTP, in the form of OpenAI's API."`
	Eval      evalCmd      `cmd:"" help:"Measure a trained model on a data set or on tasks."`
	Export    exportCmd    `cmd:"" help:"Write a trained model in the Hugging Face or GGUF format, or its adapters alone."`
	Import    importCmd    `cmd:"" help:"Make a run from a Hugging Face model."`
	Ls        lsCmd        `cmd:"" name:"ls" help:"List runs with their state, steps, loss, size and age."`
	Watch     watchCmd     `cmd:"" help:"Show runs in the browser or in this terminal, while they train or afterwards."`
	Report    reportCmd    `cmd:"" help:"Write the page of anneal watch as one HTML file."`
	Ckpt      ckptCmd      `cmd:"" name:"ckpt" help:"List, verify, hash, merge and average the checkpoints of a run."`
	Explain   explainCmd   `cmd:"" help:"Explain a config key, a number format, an optimizer's memory, ZeRO."`
	Compress  compressCmd  `cmd:"" help:"Round or prune the weights of a run, and say what that costs."`
	Config    configCmd    `cmd:"" help:"Compare configs; print their JSON Schema."`
	Debug     debugCmd     `cmd:"" help:"Pack the files that a bug report needs, without data and weights."`
	Quiz      quizCmd      `cmd:"" help:"Ask ten questions about formats, memory and operations."`
	Doctor    doctorCmd    `cmd:"" help:"Show which kernels this machine runs, how fast it is, and what is missing."`
	Bench     benchCmd     `cmd:"" help:"Measure speed, as a share of this machine's peak."`
	Shells    shellsCmd    `cmd:"" name:"completion" help:"Print a completion script for a shell, or the manual page."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

const description = `Pre-train language models: text → tokenizer → data → train → evaluate → export.

Start with: anneal demo`

// execute is main with its arguments and streams as parameters; it returns the exit code.
func execute(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c cli
	out, console := &results{w: stdout}, newConsole(stderr)
	defer console.Close(consolePatience)
	helped := false
	parser := kong.Must(&c, append(slices.Clone(quantities),
		kong.Name("anneal"),
		kong.Description(description),
		kong.Writers(out, console),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.ValueFormatter(helpOf),
		kong.Help(printHelp),
	)...)
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == completeWord:
		if complete(out, parser.Model.Node, args[1:]) != nil {
			return exitPipe
		}
		return exitOK
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	parsed, err := parser.Parse(flagsLast(parser.Model, args))
	// A command line that does not parse leaves c.JSON unset, but its error must still be JSON if the user asked for
	// it.
	asJSON := c.JSON || slices.Contains(args, "--json")
	s := &session{
		stdin: stdin, stdout: out, stderr: console, json: asJSON, status: newStatus(console), world: comm.Alone{},
	}
	defer func() { s.world.Close() }()
	defer s.quitOnSignal()()
	switch {
	case helped || out.err != nil:
		err = nil // the user asked for help, which was printed as far as possible
	case notText(args) != nil:
		err = notText(args)
	case err != nil:
		err = parseError(err, unknownFlag(parser.Model, args))
	default:
		s.quiet, s.status.quiet = c.Quiet, c.Quiet
		// Checked here for all commands, because the kernels of data commands follow ANNEAL_CPU but cannot refuse a
		// wrong value.
		if _, err = isa.Choose(); err == nil {
			err = s.prepareFiles(parsed.Flags(), parsed.Selected().Positional)
		}
		if err == nil {
			err = s.guarded(func() error { return parsed.Run(s) })
		}
		s.status.clear()
	}
	code := exitOK
	switch err = cmp.Or(err, out.err); {
	case err == nil:
		s.leave(nil, exitOK)
	case out.err != nil && errors.Is(err, syscall.EPIPE): // the command has done its work, and nobody reads the results
		s.leave(nil, exitOK)
		code = exitPipe
	default:
		code = s.fail(err)
	}
	s.reportRun() // last, so that a process killed meanwhile has already recorded how it ended
	return code
}

// flagsLast moves flags behind the arguments, so that `train c.yaml a=1 --out RUN b=2` works: kong accepts a list of
// arguments only if no flag interrupts it. Arguments after -- stay where they are.
func flagsLast(app *kong.Application, args []string) []string {
	takesValue := map[string]bool{}
	note := func(f *kong.Flag) {
		for _, name := range append(f.Aliases, f.Name) {
			takesValue["--"+name] = !f.IsBool()
		}
	}
	kong.Visit(app, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok && !f.IsBool() {
			note(f)
		}
		return next(nil)
	})
	for _, group := range selected(app.Node, args).AllFlags(false) { // what another command calls the same may differ
		for _, f := range group {
			note(f)
		}
	}
	var words, flags []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return slices.Concat(words, flags, args[i:])
		case len(a) < 2 || a[0] != '-':
			words = append(words, a)
		default:
			flags = append(flags, a)
			if takesValue[a] && i+1 < len(args) {
				i++
				flags = append(flags, args[i])
			}
		}
	}
	return slices.Concat(words, flags)
}

// selected returns the command that the words of args name.
func selected(node *kong.Node, args []string) *kong.Node {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		at := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == a })
		if at < 0 {
			break
		}
		node = node.Children[at]
	}
	return node
}

// example returns the part of a command's help that shows how to use it.
func example(lines ...string) string {
	return "Example:\n\n    " + strings.Join(lines, "\n    ")
}
