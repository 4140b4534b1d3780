// Package emulator emulates graphics cards on machines without one. It builds libraries that replace CUDA's driver,
// its compiler, its matrix library and NCCL, on which a binary built with tag cuda runs unchanged. The system's C++
// compiler compiles the kernels, which run thread by thread. The emulator shows that results are right and that the
// program waits before it reads them, but not how fast kernels are. It does not detect wrong accesses within an
// allocation, or races between blocks.
//
// The libraries are in src; start with machine.h. src/driver.cpp lists the environment variables that make the card
// small, old, absent, broken or several.
//
// The package imports internal packages only.
package emulator

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

//go:embed src
var sources embed.FS

// ErrNoCompiler reports that this machine has no C++ compiler, or that the emulator does not support it.
var ErrNoCompiler = errors.New("the emulated card needs g++ on linux/amd64")

// libraries maps the soname of each library to the libraries it is linked with.
var libraries = map[string]string{
	"driver.cpp":   "libcuda.so.1",
	"nvrtc.cpp":    "libnvrtc.so.12",
	"cublaslt.cpp": "libcublasLt.so.12",
	"nccl.cpp":     "libnccl.so.2",
}

// Build returns a directory with the libraries. It builds them on first use and keeps them in the user's cache
// directory, under a name that depends on their source.
func Build() (dir string, err error) {
	compiler, err := exec.LookPath("g++")
	if err != nil || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", ErrNoCompiler
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum, err := hashSources()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "anneal", "emulator", sum)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	staging, err := os.MkdirTemp(filepath.Dir(dir), "building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(staging)
	src, err := fs.Sub(sources, "src")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(staging, "src"), src); err != nil {
		return "", err
	}
	for file, soname := range libraries {
		cmd := exec.Command(compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-mf16c",
			"-DDEVICE_DIR=\""+filepath.Join(dir, "src")+"\"", "-Wl,-soname,"+soname,
			"-o", filepath.Join(staging, soname), filepath.Join(staging, "src", file), "-ldl", "-lpthread")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot build %s of the emulated card: %w\n%s", soname, err, out)
		}
	}
	// another process may have created it
	if err := os.Rename(staging, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

// Dir is Build for tests; it skips the test if there is no compiler.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := Build()
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return dir
}

func hashSources() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n", path, len(text))
		h.Write(text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}
