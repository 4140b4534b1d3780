package main

import (
	"slices"
	"strings"
	"text/tabwriter"

	"anneal/config"
	"anneal/plan"
)

type recipeCmd struct {
	List recipeListCmd `cmd:"" help:"List the recipes."`
	Show recipeShowCmd `cmd:"" help:"Print a recipe: a YAML config with the source of each number."`
}

type recipeListCmd struct{}

func (recipeListCmd) Help() string { return example("anneal recipe list") }

func (recipeListCmd) Run(s *session) error {
	type entry struct {
		Name  string `json:"name"`
		Model string `json:"model"`
	}
	var list []entry
	table := tabwriter.NewWriter(s.out(), 0, 0, 2, ' ', 0)
	for _, name := range config.Recipes() {
		notes, err := config.RecipeNotes(name)
		if err != nil {
			return err
		}
		list = append(list, entry{name, notes[0]})
		if _, err := table.Write([]byte(name + "\t" + notes[0] + "\n")); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return s.emit(map[string]any{"recipes": list})
}

type recipeShowCmd struct {
	Name string `arg:"" complete:"recipes" help:"A name from anneal recipe list."`
}

func (recipeShowCmd) Help() string {
	return example("anneal recipe show llama2-70b", "anneal recipe show llama2-7b > mine.yaml")
}

func (c recipeShowCmd) Run(s *session) error {
	text, err := config.RecipeText(c.Name)
	if err != nil {
		return err
	}
	s.printf("%s", text)
	return s.emit(map[string]any{"recipe": c.Name, "config": text})
}

// dryRunRecipe prints the origin of the model, every hyper-parameter with its unit and source, and what training
// needs. A run that does not fit is an error only with data, because without data nothing could run anyway.
func dryRunRecipe(s *session, name string, cfg *config.Config, memory int64) error {
	notes, err := config.RecipeNotes(name)
	if err != nil {
		return err
	}
	p, err := foresee(cfg, memory)
	if err != nil {
		return err
	}
	for _, line := range notes {
		s.prosef("# ", "# %s\n", line)
	}
	settings := cfg.Settings()
	printSettings(s, name, settings)
	s.prosef("# ", "\n# All other keys are at their defaults: `anneal explain` lists them.\n")
	printNeeds(s, cfg, p)
	s.printf("# %.3g FLOPs in all\n", p.FLOPsPerToken*float64(p.Tokens))
	result := struct {
		Recipe   string           `json:"recipe"`
		Notes    []string         `json:"notes"`
		Settings []config.Setting `json:"settings"`
		*plan.Foresight
	}{name, notes, settings, p}
	if cfg.HasData() {
		if err := unfitBeside(p, result); err != nil {
			return err
		}
	}
	return s.emit(result)
}

// printSettings prints the keys that do not come from the defaults, section by section, without those that the
// optimizer does not have.
func printSettings(s *session, recipe string, settings []config.Setting) {
	settings = slices.DeleteFunc(slices.Clone(settings),
		func(x config.Setting) bool { return strings.HasSuffix(x.Source, " has none") })
	keys, values := 0, 0
	for _, x := range settings {
		keys, values = max(keys, len(x.Key)), max(values, len(x.Value)+1+len(x.Unit))
	}
	section := ""
	for _, x := range settings {
		if now, _, _ := strings.Cut(x.Key, "."); now != section {
			s.printf("\n")
			section = now
		}
		value := strings.TrimSpace(x.Value + " " + x.Unit)
		s.prosef(strings.Repeat(" ", keys+values+4), "%-*s  %-*s  %s\n",
			keys, x.Key, values, value, strings.TrimPrefix(x.Source, "recipe "+recipe+": "))
	}
}
