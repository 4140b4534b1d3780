//go:build cuda && linux

package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"anneal/device/cuda/driver"
	"anneal/device/cuda/kernels"
	"anneal/internal/fileio"
	"anneal/tensor"
)

// maxChoices is the largest number of compile-time choices of a kernel besides its types.
const maxChoices = 8

// A moduleKey identifies a compiled file with its choices.
type moduleKey struct {
	file    string
	t       tensor.DType
	choices [maxChoices]define
}

// A kernelKey identifies a kernel of a module.
type kernelKey struct {
	moduleKey
	name string
}

// A kernel is a kernel on the card.
type kernel struct {
	function driver.Function
	shared   int // limit of its dynamic shared memory, bytes
}

// defaultShared is the dynamic shared memory that every kernel has without a request: 48 KiB minus its static arrays,
// which are at most 16 KiB.
const defaultShared = 32 << 10

// kernel returns a kernel, compiled on first use, or nil after a failure.
func (d *Device) kernel(file, name string, t tensor.DType, choices []define) *kernel {
	key := kernelKey{moduleKey{file: file, t: t}, name}
	copy(key.choices[:], choices)
	if k := d.kernels[key]; k != nil {
		return k
	}
	d.do(func() error {
		m, err := d.module(key.moduleKey)
		if err != nil {
			return err
		}
		f, err := d.driver.Function(m, name)
		if err != nil {
			return fmt.Errorf("kernel %s of %s.cu: %w", name, file, err)
		}
		d.kernels[key] = &kernel{f, defaultShared}
		return nil
	})
	return d.kernels[key]
}

// module returns a module, from the disk cache if it was compiled before.
func (d *Device) module(key moduleKey) (driver.Module, error) {
	if m, ok := d.modules[key]; ok {
		return m, nil
	}
	text, ok := kernels.Source(key.file, key.lines()...)
	if !ok {
		return 0, fmt.Errorf("cuda: no file %s.cu", key.file)
	}
	options := compilerOptions(d.card.Capability)
	path := d.cachePath(text, options)
	m, err := d.cached(path)
	if err != nil {
		code, err := d.compiler.Compile(key.file+".cu", text, options...)
		if err != nil {
			return 0, fmt.Errorf("cannot compile a kernel: %w", err)
		}
		if path != "" { // a failed write to the cache costs time, not correctness
			_ = fileio.Write(path, func(w io.Writer) error {
				_, err := w.Write(code)
				return err
			})
		}
		if m, err = d.driver.Load(code); err != nil {
			return 0, fmt.Errorf("%s.cu: %w", key.file, err)
		}
	}
	d.modules[key] = m
	return m, nil
}

// cached loads a module from the cache.
func (d *Device) cached(path string) (driver.Module, error) {
	code, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return d.driver.Load(code)
}

// cachePath returns the cache file for the code of a text. Its name depends on all inputs of the compilation. It is ""
// if there is no cache directory.
func (d *Device) cachePath(text string, options []string) string {
	root, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir := filepath.Join(root, "anneal", "cuda")
	if os.MkdirAll(dir, 0o777) != nil {
		return ""
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%q\n%s", d.card.Name, d.compiler.Version(), options, text)
	return filepath.Join(dir, hex.EncodeToString(hash.Sum(nil)[:16])+".cubin")
}

// compilerOptions returns the options for one compute capability. Products and sums may be fused; everything else is
// exact.
func compilerOptions(capability int) []string {
	return []string{"--gpu-architecture=sm_" + strconv.Itoa(capability), "--std=c++17"}
}

// lines returns the choices as #define lines: storage T and arithmetic A first.
func (k moduleKey) lines() []string {
	arithmetic := "float"
	if k.t == tensor.F64 {
		arithmetic = "double"
	}
	lines := []string{"T " + typeName(k.t), "A " + arithmetic}
	for _, c := range k.choices {
		if c.name != "" {
			lines = append(lines, c.name+" "+c.value)
		}
	}
	return lines
}

// typeName returns the name of a format in kernels.
func typeName(t tensor.DType) string { return typeNames[t] }

var typeNames = [...]string{
	tensor.F32: "float", tensor.F64: "double", tensor.BF16: "bf16", tensor.F16: "f16", tensor.I32: "int",
	tensor.U8: "u8", tensor.TF32: "tf32",
}
