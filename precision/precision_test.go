package precision

import (
	"strings"
	"testing"

	"anneal/tensor"
)

func TestEveryNameResolvesToItsPolicy(t *testing.T) {
	names := Names()
	if len(names) == 0 {
		t.Fatal("no policies")
	}
	for _, name := range names {
		p, err := Lookup(name)
		if err != nil || p.Name != name || p.Doc == "" {
			t.Errorf("%s resolves to %+v, %v", name, p, err)
		}
	}
}

// What stays in the wide format under every policy: masters and statistics, and the residual stream. A narrow master
// would lose updates silently.
func TestOnlyActivationsAndOperandsAreNarrow(t *testing.T) {
	for _, name := range Names() {
		p, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Master != tensor.F32 && p.Master != tensor.F64 {
			t.Errorf("%s: master weights are %v", name, p.Master)
		}
		if (p.Weight != p.Master) != (name == "bf16_sr") {
			t.Errorf("%s: weights in %v under %v", name, p.Weight, p.Master)
		}
		types := p.Types()
		if types.Stat != p.Master || types.Stream != p.Master {
			t.Errorf("%s: statistics are %v and the residual stream %v, masters %v",
				name, types.Stat, types.Stream, p.Master)
		}
		if types.Activation != p.Activation || types.Operand != p.Operand {
			t.Errorf("%s: the tape gets %+v of %+v", name, types, p)
		}
		if p.Master == tensor.F64 && (p.Activation != tensor.F64 || p.Operand != tensor.F64) {
			t.Errorf("%s: the reference mode narrows activations to %v, operands to %v", name, p.Activation, p.Operand)
		}
	}
}

func TestUnknownPolicyIsAnErrorThatListsThem(t *testing.T) {
	_, err := Lookup("fp7")
	if err == nil {
		t.Fatal("fp7 resolves")
	}
	for _, want := range append(Names(), "fp7") {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
}
