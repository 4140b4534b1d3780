package config

import (
	"strings"
	"testing"
)

// FP64 masters are refused, by their key, where something else decides what the weights are.
func TestFP64MastersAreRefusedWhereTheyDoNotWork(t *testing.T) {
	const key = "optimizer.masters"
	for _, with := range []string{
		"precision=bf16_sr", "precision=fp64", "optimizer.moments=bf16", "device=cuda", "memory.offload=optimizer",
		"parallel.outer.groups=2", "optimizer.name=lion", "optimizer.masters=f16",
	} {
		set := []string{key + "=f64", with}
		if with == "parallel.outer.groups=2" {
			set = append(set, "parallel.ranks=2")
		}
		p := problemsOf(t, minimal, set...)
		if len(p) == 0 || p[0].Key != key && !strings.Contains(p[0].Key+p[0].Message, "masters") {
			t.Errorf("%s: %+v", with, p)
		}
	}
	for _, fine := range []string{"precision=fp32", "precision=fp8", "optimizer.name=adam", "parallel.ranks=2"} {
		if _, err := parse([]byte(minimal), "run.yaml", []string{key + "=f64", fine}); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}
