package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"anneal/device"
	"anneal/internal/buildinfo"
	"anneal/internal/fileio"
	"anneal/internal/machine"
	"anneal/tensor"
)

// A Profile is the measured speed of a machine.
type Profile struct {
	Key
	Measured time.Time `json:"measured"`
	Sections []Section `json:"sections"` // by number of threads, the fewest first
}

// A Key says what a profile applies to: other processors, kernels or versions of the program have other keys.
type Key struct {
	CPU     string `json:"cpu"`
	Kernels string `json:"kernels"` // device.Properties.Kernels
	Version string `json:"version"`
}

// KeyOf returns the key of this machine's profile for an open device.
func KeyOf(dev device.Properties) Key {
	return Key{CPU: cmp.Or(machine.CPUName(), runtime.GOARCH), Kernels: dev.Kernels(), Version: buildinfo.Version}
}

// A Section holds the samples of a number of threads.
type Section struct {
	Threads int `json:"threads"`
	// the highest rate of products of operands of a type, by its name, measured beside the samples
	Peak    map[string]float64 `json:"peak_gflops,omitempty"`
	Samples []Sample           `json:"samples"`
}

// Peak returns the highest rate of products of a type's operands on a number of threads, in GFLOP/s: that of the most
// threads measured, up to this number, in proportion. It is 0 if none was measured.
func (p *Profile) Peak(operand tensor.DType, threads int) (peak float64) {
	for _, s := range p.Sections {
		if s.Threads <= threads || peak == 0 {
			peak = s.Peak[operand.String()] * float64(threads) / float64(s.Threads)
		}
	}
	return peak
}

// A Sample is a call and how long it took.
type Sample struct {
	device.Call
	Seconds float64 `json:"seconds"`
}

// ErrNone means that a machine has no profile.
var ErrNone = errors.New("the speed of this machine was not measured\n  measure it once with `anneal bench machine`")

// name returns the file name of a key's profile.
func (k Key) name() string {
	plain := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}
	return strings.Map(plain, fmt.Sprintf("machine-%s-%s-%s.json", k.CPU, k.Kernels, k.Version))
}

// Path returns the file of a key's profile, in the user's cache directory.
func (k Key) Path() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "anneal", k.name()), nil
}

// Save writes a profile to the user's cache directory, and returns its path.
func (p *Profile) Save() (string, error) {
	path, err := p.Path()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", err
	}
	return path, fileio.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// Load reads the profile of a key. If there is none, or if it cannot be used, the error says what to do.
func Load(k Key) (*Profile, error) {
	path, err := k.Path()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	} else if err != nil {
		return nil, err
	}
	var p Profile
	if err := json.Unmarshal(text, &p); err != nil || p.Key != k || len(p.Sections) == 0 {
		return nil, fmt.Errorf("%s is not a profile of this machine\n"+
			"  measure it again with `anneal bench machine`", path)
	}
	slices.SortFunc(p.Sections, func(a, b Section) int { return a.Threads - b.Threads })
	return &p, nil
}
