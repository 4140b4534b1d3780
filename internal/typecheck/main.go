// Command typecheck checks the types of this module's packages and tests for another system, from the source of the
// packages and of all their imports. Nothing is compiled, so it takes a tenth of the time of go vet.
//
//	GOOS=windows typecheck ./...
//	GOARCH=arm64 typecheck -tags cuda,mpi ./...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// listed is a package as go list prints it. A package compiled for a test has a path such as "a/b [a/b.test]".
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

func main() {
	problems, err := check(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// check returns the errors found in packages of this module. Arguments are those of go list: flags and patterns.
func check(args []string) ([]string, error) {
	packages, err := list(args)
	if err != nil {
		return nil, err
	}
	c := &checker{fset: token.NewFileSet(), done: map[string]*types.Package{"unsafe": types.Unsafe}}
	for _, p := range packages { // each package after its imports
		if p.Error != nil {
			return nil, errors.New(p.Error.Err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // .test: a main made by go test
			continue
		}
		if err := c.check(p); err != nil {
			return nil, err
		}
	}
	slices.Sort(c.problems)
	return slices.Compact(c.problems), nil // most packages are checked twice: as they are, and with their tests
}

func list(args []string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps", "-test",
		"-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var packages []listed
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, cmd.Wait()
}

type checker struct {
	fset     *token.FileSet
	done     map[string]*types.Package
	problems []string // in packages of this module
}

// check type-checks one package. The bodies of functions matter only in this module.
func (c *checker) check(p listed) error {
	ours := p.Module != nil && p.Module.Main
	files, err := c.parse(p)
	if err != nil {
		return err
	}
	var first error
	config := types.Config{
		IgnoreFuncBodies: !ours,
		FakeImportC:      true,
		Sizes:            types.SizesFor("gc", build.Default.GOARCH),
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped := p.ImportMap[path]; mapped != "" {
				path = mapped
			}
			if imported := c.done[path]; imported != nil {
				return imported, nil
			}
			return nil, fmt.Errorf("package %s is not listed", path)
		}),
		Error: func(err error) {
			if ours {
				c.problems = append(c.problems, err.Error())
			} else if first == nil {
				first = fmt.Errorf("%s: %w", p.ImportPath, err)
			}
		},
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.done[p.ImportPath], _ = config.Check(path, c.fset, files, nil)
	return first
}

// parse parses the files of a package in parallel.
func (c *checker) parse(p listed) ([]*ast.File, error) {
	files, errs := make([]*ast.File, len(p.GoFiles)), make([]error, len(p.GoFiles))
	var wait sync.WaitGroup
	for i, name := range p.GoFiles {
		wait.Go(func() {
			files[i], errs[i] = parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		})
	}
	wait.Wait()
	return files, errors.Join(errs...)
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
