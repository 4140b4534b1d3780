package config

import "fmt"

// Origin says where a value came from: a place in a file, the command line, a rule, a trained model, or (zero) the
// default.
type Origin struct {
	File        string
	Line, Col   int
	CommandLine string // the override as it was written
	Rule        string // for a derived value
	From        string // for a value of a model that was trained before: "the weights of DIR", "the import of DIR"
	Recipe      string // for a recipe's value, its name
	Source      string // the recipe's source of the value
	Default     bool   // the value is the default, by the comment in a run's file
}

// String returns the comment on the value in the resolved config.
func (o Origin) String() string {
	switch {
	case o.Recipe != "" && o.Source != "":
		return "recipe " + o.Recipe + ": " + o.Source
	case o.Recipe != "":
		return "recipe " + o.Recipe
	case o.Rule != "":
		return "derived: " + o.Rule
	case o.From != "":
		return "from " + o.From
	case o.CommandLine != "":
		return "command line"
	case o.File != "" && !o.Default:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return "default"
}

// Place returns the place to look for a mistake; "" if there is none.
func (o Origin) Place() string {
	switch {
	case o.CommandLine != "":
		return "command line: " + o.CommandLine
	case o.File != "":
		return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Col)
	}
	return ""
}

// Origin returns where the value of a key came from.
func (c *Config) Origin(key string) Origin { return c.origins[key] }
