package find

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Places returns the paths to try, best first, for a library with one of the names: the directories of
// ANNEAL_CUDA_PATH (a list as in PATH); the bare name for the system's loader (LD_LIBRARY_PATH, its cache); and
// existing files in the directories of CUDA toolkits, in pip's nvidia packages of the current Python, and in the
// system's directories.
func Places(names ...string) []string {
	var all []string
	add := func(dirs ...string) {
		for _, name := range names {
			for _, d := range dirs {
				path := filepath.Join(d, name)
				if _, err := os.Stat(path); err == nil && !slices.Contains(all, path) {
					all = append(all, path)
				}
			}
		}
	}
	add(filepath.SplitList(os.Getenv("ANNEAL_CUDA_PATH"))...)
	all = append(all, names...)
	add(glob("/usr/local/cuda/lib64")...)
	add(newest(glob("/usr/local/cuda-*/lib64"))...)
	for _, root := range pythons() {
		add(glob(filepath.Join(root, "lib"))...) // conda's own packages
		add(newest(glob(filepath.Join(root, "lib/python3*/site-packages/nvidia/*/lib")))...)
		add(newest(glob(filepath.Join(root, "lib/python3*/dist-packages/nvidia/*/lib")))...)
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	add("/usr/lib/"+arch+"-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib")
	return all
}

// pythons returns the roots of the Python installations where pip may install packages.
func pythons() []string {
	var roots []string
	add := func(root string) {
		if root != "" && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	add(os.Getenv("VIRTUAL_ENV"))
	add(os.Getenv("CONDA_PREFIX"))
	for _, name := range []string{"python3", "python"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		add(filepath.Dir(filepath.Dir(path))) // of a virtual environment, whose python is a link
		if real, err := filepath.EvalSymlinks(path); err == nil {
			add(filepath.Dir(filepath.Dir(real)))
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		add(filepath.Join(home, ".local"))
	}
	add("/usr/local")
	return roots
}

func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern)
	return found
}

// newest sorts directories by descending version: cuda-12.10 before cuda-12.4, and that before cuda-12.1.
func newest(dirs []string) []string {
	slices.SortFunc(dirs, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(b, a)
	})
	return dirs
}
