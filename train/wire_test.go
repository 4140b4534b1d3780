package train

import (
	"testing"

	"anneal/device"
	"anneal/train/traintest"
)

// A rounded gradient takes a second arena of gradients, and up to 2 MiB for the encoded numbers, if there are blocks to
// add; a step of one block takes only the latter.
func TestFoldTakesWhatItsFormulaSays(t *testing.T) {
	data := traintest.Data(t)
	for _, c := range []struct {
		overrides []string
		all       bool // gradients of all parameters
		coded     int64
	}{
		{[]string{"parallel.wire=bf16"}, true, 2},
		{[]string{"parallel.wire=bf16", "train.batch_tokens=128"}, false, 2},
		{[]string{"parallel.wire=int8"}, true, 1},
	} {
		cfg := smallConfig(t, data, c.overrides...)
		cfg.Model.Vocab = 300
		f, err := MeasureRun(cfg, device.Null{})
		if err != nil {
			t.Fatal(err)
		}
		want := c.coded * 300 * int64(cfg.Model.Dim) // of the largest parameter, the table
		if c.all {
			want += f.Bytes(Gradients)
		}
		if got := f.Bytes(GradientFold); got < want || got > want+4<<10 {
			t.Errorf("%v: the fold takes %d bytes, want %d and a little for scales", c.overrides, got, want)
		}
	}
}
