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

// checkKeys refuses keys that would change nothing in a plan of a cluster.
func checkKeys(overrides []string) error {
	var faults []error
	for _, text := range overrides {
		key, _, _ := strings.Cut(text, "=")
		if takes := takenFor(key); takes != "" {
			faults = append(faults, errors.New(doesNotCount(text, takes)))
		}
	}
	return errors.Join(faults...)
}

// uncounted returns a remark for every key of a config that would change nothing in a plan of a cluster.
func uncounted(cfg *config.Config) (remarks []string) {
	plain := config.Default()
	for _, k := range config.Keys() {
		value, _ := cfg.Value(k.Name) // the key is known
		usual, _ := plain.Value(k.Name)
		if takes := takenFor(k.Name); takes != "" && cfg.Given(k.Name) && value != usual {
			remarks = append(remarks, doesNotCount(k.Name+" = "+value, takes))
		}
	}
	return remarks
}

func doesNotCount(value, takes string) string {
	return fmt.Sprintf("%s does not count in a plan of a cluster, which takes %s", value, takes)
}
