package train

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNumbersThatJSONLacksAreNull(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1.5, 1e300, math.SmallestNonzeroFloat64} {
		data, err := json.Marshal(Number(f))
		if err != nil {
			t.Fatal(err)
		}
		back := Number(7)
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatalf("%v becomes %s: %v", f, data, err)
		}
		finite := !math.IsNaN(f) && !math.IsInf(f, 0)
		if finite && float64(back) != f || !finite && (string(data) != "null" || !math.IsNaN(float64(back))) {
			t.Errorf("%v becomes %s and reads back as %v", f, data, back)
		}
	}
}
