// Package emulator is a graphics card for machines without one: libraries that stand in for CUDA's driver, its compiler and its matrix
// library, so that a binary built with tag cuda runs on it unchanged. Kernels are compiled by the system's C++ compiler and run
// thread by thread. It shows that results are right and that nothing is read before it was waited for; it says nothing about
// speed. What it does not catch: bad use of memory that lies within an allocation, and races between blocks.
//
// The libraries are in src: machine.h is where to start. src/driver.cpp lists the environment variables that make the
// card small, old, absent or broken.
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

// ErrNoCompiler says that this machine has no C++ compiler, or is of a kind that the emulator is not written for.
var ErrNoCompiler = errors.New("the emulated card needs g++ on linux/amd64")

// libraries are the soname of each library, and what it is linked with.
var libraries = map[string]string{
	"driver.cpp":   "libcuda.so.1",
	"nvrtc.cpp":    "libnvrtc.so.12",
	"cublaslt.cpp": "libcublasLt.so.12",
}

// Build returns a directory with the libraries. They are built when first asked for and kept in the user's cache directory, under a
// name that changes with their source.
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
	if err := os.Rename(staging, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been faster
		return "", err
	}
	return dir, nil
}

// Dir returns what Build does, and skips the test where it cannot.
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
