package config

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"anneal/internal/nearest"
)

// A recipe is the config of a published model: a YAML file whose comments give the source of each number, say what was
// not disclosed, and name the substitutes for features that this program does not have. A file and overrides replace
// parts of it.
//
//go:embed recipes/*.yaml
var recipeFiles embed.FS

// Recipes returns the names of all recipes, sorted.
func Recipes() []string {
	files, err := recipeFiles.ReadDir("recipes")
	if err != nil {
		panic("config: " + err.Error()) // embedded: it is there
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// RecipeText returns the YAML file of a recipe, or an error that names the nearest one.
func RecipeText(name string) (string, error) {
	if text, err := recipeFiles.ReadFile(path.Join("recipes", name+".yaml")); err == nil {
		return string(text), nil
	}
	try := strings.Join(Recipes(), ", ")
	if near := nearest.To(strings.ToLower(name), Recipes()); near != "" {
		try = near + "; there are " + try
	}
	return "", Problem{Message: fmt.Sprintf("there is no recipe %q", name), Try: try}
}

// RecipeNotes returns the comments before the first key of a recipe's file: the model's origin, and what is known
// about it.
func RecipeNotes(name string) ([]string, error) {
	text, err := RecipeText(name)
	if err != nil {
		return nil, err
	}
	var notes []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		notes = append(notes, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return notes, nil
}

// readRecipe sets the values of a recipe. The comment of each line is the source of its value.
func (c *Config) readRecipe(name string) error {
	text, err := RecipeText(name)
	if err != nil {
		return err
	}
	file := "recipe " + name
	if problems, _ := c.readYAML([]byte(text), file); problems != nil {
		return &Error{problems}
	}
	lines := strings.Split(text, "\n")
	for key, from := range c.origins {
		from.Recipe = name
		_, comment, _ := strings.Cut(lines[from.Line-1], "# ")
		from.Source = strings.TrimSpace(comment)
		c.origins[key] = from
	}
	c.recipe = name
	return nil
}

// A Setting is a key with its value, for display.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Unit   string `json:"unit,omitempty"`
	Source string `json:"source"`
}

// Settings lists the keys that are not at their defaults, in the order of the file.
func (c *Config) Settings() []Setting {
	var list []Setting
	for _, k := range allKeys {
		if from, said := c.origins[k.Name]; said {
			list = append(list, Setting{k.Name, c.value(k), k.Unit, from.String()})
		}
	}
	return list
}
