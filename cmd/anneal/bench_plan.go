package main

type benchPlanCmd struct {
	Published bool   `required:"" help:"Runs that others measured and published, on clusters."`
	Rows      string `type:"existingfile" placeholder:"FILE.csv" help:"With --published: these runs instead of the built-in ones."`
	Fit       bool   `help:"With --published: fit the constants of each accelerator again."`
}

func (benchPlanCmd) Help() string {
	return example("anneal bench plan --published", "anneal bench plan --published --json | jq .summary")
}

func (c benchPlanCmd) Run(s *session) error { return s.publishedPlan(c.Rows, c.Fit) }
