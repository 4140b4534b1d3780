package main

import (
	"errors"
	"fmt"
	"strings"

	"anneal/config"
)

// clusterFlags lists the keys of time and memory that a plan of a cluster does not read, by their beginnings, and what
// it takes instead.
var clusterFlags = [][2]string{
	{"parallel.", "--mesh and --zero"}, {"train.micro_batch", "--micro"}, {"precision", "--precision"},
	{"memory.recompute", "--recompute"}, {"memory.offload", "all state in the memory of devices"},
	{"optimizer.name", adamW}, {"optimizer.moments", adamW}, {"optimizer.masters", adamW},
	{"model.lora_", "all weights as trained"}, {"distill.", "no teacher"}, {"average.", "no average of the weights"},
}

const adamW = "the bytes of AdamW, whatever the optimizer"

// takenFor returns what a plan of a cluster takes instead of a key; "" if the key counts.
func takenFor(key string) string {
	for _, c := range clusterFlags {
		if strings.HasPrefix(key, c[0]) {
			return c[1]
		}
	}
	return ""
}

// checkKeys refuses keys that would change nothing in a plan of a cluster, unless they have their usual values.
func checkKeys(overrides []string) error {
	var faults []error
	usual := config.Default()
	for _, text := range overrides {
		key, value, _ := strings.Cut(text, "=")
		was, _ := usual.Value(key)
		if takes := takenFor(key); takes != "" && value != was {
			faults = append(faults, errors.New(doesNotCount(text, takes)))
		}
	}
	return errors.Join(faults...)
}

// uncounted returns a remark for every key of a config that would change nothing in a plan of a cluster, and which no
// flag replaces.
func (c planCmd) uncounted(cfg *config.Config) (remarks []string) {
	replaced := map[string]bool{
		"parallel.zero": c.Zero != nil, "train.micro_batch": c.Micro != nil, "precision": c.Precision != "",
		"memory.recompute": c.Recompute != "",
	}
	plain := config.Default()
	for _, k := range config.Keys() {
		value, _ := cfg.Value(k.Name) // the key is known
		usual, _ := plain.Value(k.Name)
		flagged := replaced[k.Name] || c.Mesh != "" && strings.HasPrefix(k.Name, "parallel.")
		if takes := takenFor(k.Name); takes != "" && cfg.Given(k.Name) && value != usual && !flagged {
			remarks = append(remarks, doesNotCount(k.Name+" = "+value, takes))
		}
	}
	return remarks
}

func doesNotCount(value, takes string) string {
	return fmt.Sprintf("%s does not count in a plan of a cluster, which takes %s", value, takes)
}
