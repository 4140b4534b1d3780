package use

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"anneal/run"
	"anneal/train/traintest"

	"anneal/device"
	"anneal/device/devicetest"
	"anneal/model"
	"anneal/safetensors"
	"anneal/train"
)

// farDevice makes device=cuda a device as far from the host as one can be, until the test ends. Each that is opened
// fails at a kernel call if the number returned is set, and has that many bytes free.
func farDevice(t *testing.T) *devicetest.Device {
	t.Helper()
	like := &devicetest.Device{}
	before := train.Devices["cuda"]
	train.Devices["cuda"] = func(int, int) (device.Device, error) {
		d, err := devicetest.New(2)
		if err == nil {
			d.Free, d.FailAt = like.Free, like.FailAt
			d.OnClose = func() { like.Calls = d.Calls }
		}
		return d, err
	}
	t.Cleanup(func() { train.Devices["cuda"] = before })
	return like
}

// What a trained run is opened for gives the same on a device apart.
func TestATrainedRunOnADeviceApart(t *testing.T) {
	farDevice(t)
	data, dir := traintest.Data(t), t.TempDir()
	saved := filepath.Join(dir, "run")
	mustRun(t, run.Options{Config: with(t, data, "train.steps=6", "schedule.warmup=1", "average.ema=0.9"), Dir: saved})
	type results struct {
		text   string
		eval   train.EvalResult
		losses []float32
		export *ExportReport
		files  string
	}
	use := func(name string) (got results) {
		r, err := OpenWith(saved, OpenOptions{Device: name, WeightOptions: run.WeightOptions{Average: true}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, got.text, err = generate(r, GenerateOptions{
			Prompt: "the sum", MaxTokens: 60, Sampling: model.Sampling{Temperature: 0.8, Seed: 3},
		}); err != nil {
			t.Fatal(err)
		}
		if got.eval, err = r.Evaluate(context.Background(), data, 512, nil); err != nil {
			t.Fatal(err)
		}
		if got.losses, err = r.DocumentLosses(context.Background(), data, nil); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "hf")
		os.RemoveAll(out)
		if got.export, err = r.ExportHF(out, safetensors.F32); err != nil {
			t.Fatal(err)
		}
		got.files = contents(t, out)
		return got
	}
	far, here := use("cuda"), use("cpu")
	if far.text != here.text || far.text == "" {
		t.Errorf("it generates %q, on the CPU %q", far.text, here.text)
	}
	if far.eval.Loss != here.eval.Loss {
		t.Errorf("its loss is %v, on the CPU %v", far.eval.Loss, here.eval.Loss)
	}
	if !slices.Equal(far.losses, here.losses) {
		t.Error("losses of documents differ from those on the CPU")
	}
	if !reflect.DeepEqual(far.export, here.export) || far.files != here.files {
		t.Errorf("its export is %v, on the CPU %v", far.export, here.export)
	}
}
