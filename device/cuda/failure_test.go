//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"anneal/device"
	"anneal/device/cuda/emulator"
	"anneal/internal/filetest"
	"anneal/tensor"
)

// Each case of a broken, old or absent card needs its own process, because the libraries read their environment when
// they are loaded, and a failure is permanent. So a case starts this binary again, which runs a scene and prints the
// outcome.
func TestMain(m *testing.M) {
	if scene := scenes[os.Getenv("ANNEAL_CUDA_SCENE")]; scene != nil {
		if err := scene(os.Stdout); err != nil {
			fmt.Println("error:", err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var scenes = map[string]func(w io.Writer) error{
	"open": openScene, "lost": lostScene, "full": fullScene, "signal": signalScene, "compile": compileScene,
}

// play runs a scene with the libraries of a directory and the environment, and returns what it printed.
func play(t *testing.T, scene, dir string, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ANNEAL_CUDA_SCENE="+scene, "ANNEAL_CUDA_PATH="+dir)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("scene %s with %q: %v\n%s", scene, env, err, out)
	}
	return string(out)
}

func wants(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%q is not in\n%s", p, got)
		}
	}
}

func openScene(w io.Writer) error {
	d, err := New(0)
	if err != nil {
		return err
	}
	defer d.Close()
	fmt.Fprintln(w, d.Name(), d.card.Capability)
	return nil
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	dir := emulator.Dir(t)
	for _, c := range []struct {
		name  string
		env   []string
		parts []string
	}{
		{"nothing is", nil, []string{"cuda Emulated card 90"}},
		{"an old driver", []string{"ANNEAL_EMULATOR_DRIVER=11080"},
			[]string{"supports CUDA 11.8, but 12.0 is needed", "install a driver of version 525"}},
		{"no card", []string{"ANNEAL_EMULATOR_CARDS=0"}, []string{"CUDA_ERROR_NO_DEVICE", "cuInit", "nvidia-smi"}},
		{"an old card", []string{"ANNEAL_EMULATOR_SM=75"},
			[]string{"Emulated card has compute capability 7.5", "8.0 or more"}},
	} {
		t.Run(c.name, func(t *testing.T) { wants(t, play(t, "open", dir, c.env...), c.parts...) })
	}
	for _, missing := range []struct{ library, hint string }{
		{"libnvrtc.so.12", "pip install nvidia-cuda-nvrtc-cu12"},
		{"libcublasLt.so.12", "pip install nvidia-cublas-cu12"},
		{"libcuda.so.1", "install NVIDIA's driver"},
	} {
		t.Run("no "+missing.library, func(t *testing.T) {
			partial := t.TempDir()
			for _, l := range []string{"libcuda.so.1", "libnvrtc.so.12", "libcublasLt.so.12"} {
				if l != missing.library {
					if err := os.Symlink(filepath.Join(dir, l), filepath.Join(partial, l)); err != nil {
						t.Fatal(err)
					}
				}
			}
			out := play(t, "open", partial, "PATH=", "VIRTUAL_ENV=", "CONDA_PREFIX=", "LD_LIBRARY_PATH=",
				"HOME="+partial, "XDG_CACHE_HOME="+partial)
			if strings.HasPrefix(out, "cuda ") {
				t.Skipf("this machine has a %s of its own", missing.library)
			}
			wants(t, out, missing.library+" not found", missing.hint, "ANNEAL_CUDA_PATH")
		})
	}
}

// A file that is not a library is named, and the files after it are tried.
func TestOpenPassesOverWhatIsNoLibrary(t *testing.T) {
	dir, bad := emulator.Dir(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(bad, "libcuda.so.1"), []byte("no library"), 0o666); err != nil {
		t.Fatal(err)
	}
	wants(t, play(t, "open", bad+":"+dir), "cuda Emulated card")
	alone := play(t, "open", bad, "PATH=", "VIRTUAL_ENV=", "CONDA_PREFIX=", "LD_LIBRARY_PATH=")
	if !strings.HasPrefix(alone, "cuda ") { // the machine has its own library
		wants(t, alone, filepath.Join(bad, "libcuda.so.1"))
	}
}

// multiply asks for a product of ones [64, 64], whose elements are 64.
func multiply(d *Device, a *tensor.Arena) *tensor.Tensor {
	x, y := a.New(tensor.F32, 64, 64), a.New(tensor.F32, 64, 64)
	ones := make([]float32, 64*64)
	for i := range ones {
		ones[i] = 1
	}
	d.Write(&x, tensor.Of(ones).Raw())
	d.MatMul(&y, &x, &x, device.NN, device.MatMulOptions{Operand: tensor.BF16})
	return &y
}

func first(d *Device, t *tensor.Tensor) float32 {
	raw := make([]byte, t.Bytes())
	d.Read(raw, t)
	v := tensor.View(tensor.F32, raw, t.Shape()...)
	return v.F32()[0]
}

func lostScene(w io.Writer) error {
	d, err := New(0)
	if err != nil {
		return err
	}
	defer d.Close()
	a, err := d.NewArena("activations", 1<<20)
	if err != nil {
		return err
	}
	defer a.Close()
	fmt.Fprintln(w, "before", first(d, multiply(d, a)), d.Wait())
	y := multiply(d, a) // the second conversion of an operand fails
	fmt.Fprintln(w, "after", first(d, y), d.collect(1)[0])
	err = d.Wait()
	multiply(d, a)
	fmt.Fprintln(w, "the same", errors.Is(d.Wait(), err))
	if _, more := d.NewArena("more", 1<<10); more != nil {
		fmt.Fprintln(w, "more:", more)
	}
	return err
}

// After a card fails in the middle of a run, calls do nothing, numbers are NaN, and the first failure is reported.
func TestALostCardIsReportedOnce(t *testing.T) {
	out := play(t, "lost", emulator.Dir(t), "ANNEAL_EMULATOR_FAIL_LAUNCH=3")
	wants(t, out, "before 64 <nil>", "after NaN NaN", "the same true", "more: cannot reserve 0.0 MiB for more: "+
		"Emulated card: CUDA", "error: Emulated card: CUDA", "CUDA_ERROR_LAUNCH_FAILED")
}

func fullScene(w io.Writer) error {
	d, err := New(0)
	if err != nil {
		return err
	}
	defer d.Close()
	a, err := d.NewArena("parameters", 8<<20)
	if err != nil {
		return err
	}
	defer a.Close()
	_, err = d.NewArena("activations", 64<<20)
	fmt.Fprintln(w, "still", first(d, multiply(d, a)), d.Wait())
	return err
}

// An arena that does not fit is refused with an error that lists all reservations, and the device stays usable.
func TestOutOfMemoryNamesWhatIsReserved(t *testing.T) {
	out := play(t, "full", emulator.Dir(t), fmt.Sprintf("ANNEAL_EMULATOR_MEMORY=%d", 50<<20))
	wants(t, out, "still 64 <nil>", "no room for activations, 64.0 MiB: 42.0 MiB of 50.0 MiB are free",
		"reserved so far: parameters 8.0 MiB", "smaller batch")
}

// A profile counts every kernel of a run and names products by their shape.
func TestAProfileNamesEveryKernel(t *testing.T) {
	out := play(t, "full", emulator.Dir(t), "ANNEAL_CUDA_PROFILE=1")
	wants(t, out, "µs a call", "1 ", "matmul bf16 nn 64×64×64")
	if n := strings.Count(out, "  operand\n"); n != 1 { // two calls, one line
		t.Errorf("the kernel operand is on %d lines of\n%s", n, out)
	}
}

func signalScene(w io.Writer) error {
	d, err := New(0)
	if err != nil {
		return err
	}
	defer d.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		return err
	}
	select {
	case s := <-signals:
		fmt.Fprintln(w, "got", s)
	case <-time.After(10 * time.Second):
		fmt.Fprintln(w, "nothing came")
	}
	defer func() { fmt.Fprintln(w, "panicked:", recover()) }()
	var nowhere *int
	fmt.Fprintln(w, *nowhere) // Go still handles SIGSEGV
	return nil
}

func TestSignalsAreGoStill(t *testing.T) {
	wants(t, play(t, "signal", emulator.Dir(t)), "got interrupt", "panicked: runtime error: invalid memory address")
}

// Calls do not allocate, because a step has thousands of them.
func TestCallsDoNotAllocate(t *testing.T) {
	d := newEmulated(t)
	a, err := d.NewArena("activations", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	x, y := a.New(tensor.F32, 16, 16), a.New(tensor.BF16, 16, 16)
	opt := device.MatMulOptions{Operand: tensor.BF16}
	if n := filetest.AllocsPerRun(20, func() { d.MatMul(&y, &x, &x, device.NN, opt) }); n > 0 {
		t.Errorf("MatMul allocates %v times a call", n)
	}
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
}
