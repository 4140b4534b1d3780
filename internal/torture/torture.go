package torture

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

var (
	duration = flag.Duration("torture",
		0, "how long the Torture tests of each package take together; 0 is a few tries each")
	seed   = flag.Uint64("torture.seed", 0, "seed of the first try of each Torture test; 0 draws one")
	report = flag.String("torture.report", "",
		"append the results of the Torture tests to this `file`, a path from the module's root")
	long = flag.Bool("long", false, "also run the tests that take longest")
)

// Long skips a test, one of those that take longest, unless the flag -long is set, as in .ci/run.
func Long(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("it takes long: go test -long")
	}
}

// Sample reports whether case i of a matrix of cases runs: one in n, or with -long every one. Give it sums of indices,
// so that all values of each axis are among the cases that run.
func Sample(i, n int) bool { return *long || i%n == 0 }

var begun = time.Now()

// Run calls try repeatedly: a few times, or until the test's share of -torture is over. A try injects a fault chosen
// by its random numbers, and fails the test if the program does not keep its promises. It returns the fault and the
// outcome, for the report.
func Run(t *testing.T, few int, try func(r *rand.Rand) (fault, outcome string)) {
	t.Helper()
	share := shareOf(t)
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	rows := rows{}
	at := first
	defer func() {
		fault := recover()
		if t.Failed() || fault != nil {
			t.Logf("repeat it with: go test . -run '^%s$' -torture.seed=%d", t.Name(), at)
		}
		if fault != nil {
			panic(fault)
		}
	}()
	begin := time.Now()
	for n := 0; n < few && *duration == 0 || time.Since(begin) < share; n++ {
		at = first + uint64(n)
		fault, outcome := try(rand.New(rand.NewPCG(at, 0)))
		rows.add(fault, outcome)
		if t.Failed() {
			return
		}
	}
	t.Logf("seed %d: %v", first, rows)
	write(t, Record{Test: t.Name(), Seed: first, Seconds: int(time.Since(begin).Seconds()), Rows: rows})
}

// shareOf returns the time of one Torture test of its package.
func shareOf(t *testing.T) time.Duration {
	if end, ok := t.Deadline(); ok && begun.Add(*duration).After(end) {
		t.Fatalf("go test ends before the %v of -torture are over: give it -timeout=0, too", *duration)
	}
	return *duration / time.Duration(max(1, len(Tests("."))))
}

var testName = regexp.MustCompile(`(?m)^func (TestTorture\w*)\(`)

// Tests returns the names of the Torture tests in a directory.
func Tests(dir string) (names []string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, m := range testName.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// A Record is the result of one test: a line of the report.
type Record struct {
	Package string `json:"package"` // its directory
	Test    string `json:"test"`
	Date    string `json:"date"`
	Machine string `json:"machine"`
	Seed    uint64 `json:"seed"`
	Seconds int    `json:"seconds"`
	Rows    rows   `json:"rows"`
}

// rows counts outcomes by fault.
type rows map[string]map[string]int

func (r rows) add(fault, outcome string) {
	if r[fault] == nil {
		r[fault] = map[string]int{}
	}
	r[fault][outcome]++
}

// write appends the record to the report.
func write(t *testing.T, r Record) {
	if *report == "" {
		return
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := os.Getwd()
	r.Package, _ = filepath.Rel(root, dir)
	r.Package = filepath.ToSlash(r.Package)
	r.Date, r.Machine = time.Now().UTC().Format(time.DateOnly), machine()
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	path := *report
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil { // one write: several packages append at once
		t.Fatal(err)
	}
}

// Root returns the module's directory: the nearest above that holds go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", os.ErrNotExist
		}
		dir = up
	}
	return "", err
}

// machine names the processors and the system.
func machine() string {
	name := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			name = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d × %s, %s/%s", runtime.NumCPU(), name, runtime.GOOS, runtime.GOARCH)
}
