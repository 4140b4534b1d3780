package main

type labCmd struct {
	Ablate     labAblateCmd     `cmd:"" help:"Train variants of a run with several seeds, and say which differences are real."`
	Claims     labClaimsCmd     `cmd:"" help:"Measure what papers claim about training, and judge it by rules."`
	Study      studyCmd         `cmd:"" help:"Repeat a study of how language models learn."`
	Techniques labTechniquesCmd `cmd:"" help:"Compare training techniques, each with a tuned learning rate and several seeds."`
}
