package config

import "fmt"

// preceding checks embeddings that depend on the previous token (model.bigram and model.smear), and refuses
// combinations that they do not support.
func (k *checker) preceding() {
	m, p := &k.c.Model, &k.c.Parallel
	k.between("model.bigram", m.Bigram, 0, 1<<24)
	for _, x := range []struct {
		given            bool
		key, value, none string
	}{
		{m.Bigram > 0, "model.bigram", fmt.Sprint(m.Bigram), "0"},
		{m.Smear, "model.smear", "true", "false"},
	} {
		for _, other := range []struct {
			wrong     bool
			what, try string
		}{
			{m.Family != "anneal", "model.family = " + m.Family, "model.family = anneal"},
			{p.Tensor > 1, "parallel.tensor", "parallel.tensor = 1"},
			{p.Context > 1, "parallel.context: the token before is on another rank", "parallel.context = 1"},
			{p.Pipeline > 1, "parallel.pipeline", "parallel.pipeline = 1"},
		} {
			if x.given && other.wrong && !k.reported(x.key) {
				k.fault(x.key, other.try+", or "+x.key+" = "+x.none, "%s = %s does not work with %s", x.key, x.value,
					other.what)
			}
		}
	}
}
