package config

import (
	"strings"
	"testing"
)

// What a mesh refuses of a key that has other values is named with its value, and another is proposed.
func TestMeshesNameTheValueTheyRefuse(t *testing.T) {
	for _, c := range []struct{ set, says, try string }{
		{"optimizer.name=sophia parallel.tensor=2",
			"optimizer.name = sophia does not work with", "optimizer.name = adamw"},
		{"precision=fp8 fp8.scaling=mx parallel.context=2",
			"fp8.scaling = mx does not work with", "fp8.scaling = current"},
		{"train.noise_scale_every=1 train.micro_batch=1 parallel.pipeline=2 model.layers=2",
			"does not work with both parallel.pipeline and model.tie_embeddings", "leave it out"},
	} {
		p := problemsOf(t, minimal, strings.Split(c.set, " ")...)
		if len(p) != 1 || !strings.Contains(p[0].Message, c.says) || !strings.HasPrefix(p[0].Try, c.try) {
			t.Errorf("%s: %+v", c.set, p)
		}
	}
}
