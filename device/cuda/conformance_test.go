//go:build cuda && linux

package cuda

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/device/cuda/emulator"
	"anneal/device/cuda/find"
	"anneal/device/cuda/kernels"
	"anneal/device/cuda/nvrtc"
)

func newEmulated(t *testing.T) *Device {
	t.Helper()
	t.Setenv("ANNEAL_CUDA_PATH", emulator.Dir(t))
	d, err := New(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func TestTheEmulatedCardConforms(t *testing.T) {
	d := newEmulated(t)
	conformance.Run(t, func(*testing.T) device.Device { return d })
	t.Run("RealCompiler", func(t *testing.T) { compileForCards(t, slices.Collect(maps.Keys(d.modules))) })
}

// On a machine with a GPU the suite also runs on the GPU, in a separate process that does not load the emulator.
func TestTheCardConforms(t *testing.T) {
	if os.Getenv("ANNEAL_CUDA_CARD") != "" {
		d, err := New(0)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		conformance.Run(t, func(*testing.T) device.Device { return d })
		return
	}
	if out := play(t, "open", os.Getenv("ANNEAL_CUDA_PATH")); !strings.HasPrefix(out, "cuda ") {
		first, _, _ := strings.Cut(out, "\n")
		t.Skip("needs a GPU: ", first)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestTheCardConforms$", "-test.v")
	cmd.Env = append(os.Environ(), "ANNEAL_CUDA_CARD=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// compileForCards compiles modules for Ampere and Hopper if the vendor's compiler is installed. It does so in a
// separate process, because that compiler needs parts of a driver that the emulated one lacks.
func compileForCards(t *testing.T, modules []moduleKey) {
	compiler := realCompiler()
	if compiler == "" {
		t.Skip("the vendor's compiler is not installed here: pip install nvidia-cuda-nvrtc-cu12")
	}
	dir := t.TempDir()
	for i, m := range someOfEach(modules) {
		text, _ := kernels.Source(m.file, m.lines()...)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.cu", m.file, i)), []byte(text),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	if out := play(t, "compile", filepath.Dir(compiler), "ANNEAL_CUDA_SOURCES="+dir); out != "" {
		t.Error(out)
	}
}

// someOfEach returns up to two modules of each file and storage type: the first and the last by their choices.
func someOfEach(modules []moduleKey) []moduleKey {
	slices.SortFunc(modules, func(a, b moduleKey) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.t, b.t), slices.Compare(a.lines(), b.lines()))
	})
	var some []moduleKey
	for i, m := range modules {
		like := func(j int) bool {
			return j >= 0 && j < len(modules) && modules[j].file == m.file && modules[j].t == m.t
		}
		if !like(i-1) || !like(i+1) {
			some = append(some, m)
		}
	}
	return some
}

// realCompiler returns the path of NVRTC, "" if there is only the emulator's.
func realCompiler() string {
	emulated := os.Getenv("ANNEAL_CUDA_PATH")
	for _, path := range find.Places("libnvrtc.so.12") {
		if dir := filepath.Dir(path); dir != "." && dir != emulated {
			return path
		}
	}
	return ""
}

// compileScene compiles all files of a directory and prints the errors.
func compileScene(w io.Writer) error {
	compiler, err := nvrtc.Open(12)
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(os.Getenv("ANNEAL_CUDA_SOURCES"), "*.cu"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("no sources: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, capability := range []int{80, 90} {
			code, err := compiler.Compile(filepath.Base(path), string(text), compilerOptions(capability)...)
			if err != nil || !bytes.HasPrefix(code, []byte("\x7fELF")) {
				fmt.Fprintf(w, "%d bytes of code for sm_%d: %v\n", len(code), capability, err)
			}
		}
	}
	return nil
}
