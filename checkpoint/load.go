package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/units"
)

// LoadLatest fills tensors and state from the newest checkpoint under root that verifies. Info.Skipped lists the
// newer ones that do not, with the reason. tensors must be exactly the checkpoint's weights, exactly its optimizer
// state, exactly its average, or several of these. If the checkpoint has weights but no average, the average's
// tensors do not change and Info.Averaged is false. state is a pointer for json.Unmarshal, or nil. If the directory
// has no checkpoint the error is ErrNone. After an error the contents of the tensors are undefined.
//
// It needs no lock: another process may train and save at the same time.
func LoadLatest(root string, tensors []Tensor, state any) (Info, error) {
	return loadLatest(root, tensors, state, alone)
}

func loadLatest(root string, tensors []Tensor, state any, as role) (info Info, err error) {
	skipped, err := newest(root, func(e *Entry) error {
		info, err = e.load(root, tensors, state, as)
		return err
	})
	info.Skipped = skipped
	return info, err
}

// LoadState is LoadLatest for the state alone: it reads no tensor.
func LoadState(root string, state any) (info Info, err error) {
	skipped, err := newest(root, func(e *Entry) error {
		info, err = e.fill(root, nil, state, false)
		return err
	})
	info.Skipped = skipped
	return info, err
}

// newest calls use with the usable checkpoints, from newest to oldest, until use returns no *Fault. It returns the
// faults of the newer ones. If all fail because a writer has replaced them, it starts over.
func newest(root string, use func(*Entry) error) (skipped []error, err error) {
	first := ""
	for {
		entries, err := List(root)
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 {
			return nil, fmt.Errorf("checkpoint: %s: %w", root, ErrNone)
		}
		var faults []error
		for i := range entries {
			err := entries[i].Err
			if err == nil {
				err = use(&entries[i])
			}
			if fault := (*Fault)(nil); errors.As(err, &fault) {
				faults = append(faults, err)
				continue
			}
			for _, rest := range entries[i:] { // unusable ones are last in the list, whatever their step
				if rest.Err != nil && rest.Step > entries[i].Step {
					faults = append(faults, rest.Err)
				}
			}
			return faults, err
		}
		if entries[0].Name == first {
			err := fmt.Errorf("checkpoint: no checkpoint in %s is usable:\n%w", root, errors.Join(faults...))
			if errors.Is(err, ErrFuture) {
				err = fmt.Errorf("%w\n  use the version of anneal that wrote them, or a newer one", err)
			}
			return nil, err
		}
		first = entries[0].Name
	}
}

// LoadStep is LoadLatest for the newest checkpoint of one step, without falling back to another.
func LoadStep(root string, step int64, tensors []Tensor, state any) (Info, error) {
	e, err := find(root, step)
	if err != nil {
		return Info{}, err
	}
	if e.Err != nil {
		return Info{}, e.Err
	}
	return e.load(root, tensors, state, alone)
}

// Load is LoadLatest for the checkpoint with the given name, without falling back to another; tensors may be only some
// of the checkpoint's. When processes train together, the one with the Store, which has the option Together, selects a
// checkpoint and sends Info.Name to the others. Each of them loads its own tensors with Load. It needs no lock.
func Load(root, name string, tensors []Tensor, state any) (Info, error) {
	e, err := named(root, name)
	if err != nil {
		return Info{}, err
	}
	return e.load(root, tensors, state, follower)
}

// named returns the usable checkpoint with the given name.
func named(root, name string) (*Entry, error) {
	step, ok := stepOf(name)
	if !ok {
		return nil, fmt.Errorf("checkpoint: %.80q is no name of a checkpoint; names are like step-00001200", name)
	}
	if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
		return nil, fmt.Errorf("checkpoint: %w\n  every process of the run must see the directory %s", err, root)
	}
	e := readEntry(root, name, step)
	return &e, e.Err
}

// LoadStepState is LoadStep for the state alone: it reads no tensor.
func LoadStepState(root string, step int64, state any) (Info, error) {
	e, err := find(root, step)
	if err != nil {
		return Info{}, err
	}
	if e.Err != nil {
		return Info{}, e.Err
	}
	return e.fill(root, nil, state, false)
}

// find returns the newest checkpoint of a step; a usable one, if there is any.
func find(root string, step int64) (*Entry, error) {
	entries, err := List(root)
	if err != nil {
		return nil, err
	}
	var steps []string
	for i := range entries {
		if entries[i].Step == step {
			return &entries[i], nil
		}
		steps = append(steps, fmt.Sprint(entries[i].Step))
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("checkpoint: %s: %w", root, ErrNone)
	}
	return nil, fmt.Errorf("checkpoint: %s: %w of step %d\n  %s", root, ErrNone, step, there(steps))
}

// there describes which steps have a checkpoint.
func there(steps []string) string {
	if len(steps) == 1 {
		return "its checkpoint is of step " + steps[0]
	}
	return "its checkpoints are of steps " + strings.Join(steps, ", ")
}

// A role is the role of a process in a load.
type role int

const (
	alone    role = iota // has all tensors
	leader               // has some tensors, and checks every chunk for the others
	follower             // has some
)

// load fills tensors and state from one checkpoint. Damage is a *Fault.
func (e *Entry) load(root string, tensors []Tensor, state any, as role) (Info, error) {
	check := checkTensors // a rank of many may hold nothing
	if as == alone {
		check = checkSome
	}
	if err := check(tensors); err != nil {
		return Info{}, err
	}
	wants, err := e.manifest.match(tensors, as == alone)
	if err != nil {
		return Info{}, fmt.Errorf("checkpoint: %s %w: %w", e.Name, ErrOtherModel, err)
	}
	return e.fill(root, wants, state, as == leader)
}

// fill reads the state and the wanted parts of the tensors. It checks the chunks that it needs, or every chunk.
func (e *Entry) fill(root string, wants []want, state any, every bool) (Info, error) {
	r := e.reader(root)
	r.every = every
	stateText, err := r.state()
	if err != nil {
		return Info{}, err
	}
	if err := r.deliver(wants); err != nil {
		return Info{}, err
	}
	if state != nil {
		if err := e.decodeState(stateText, state); err != nil {
			return Info{}, err
		}
	}
	return e.info(root)
}

// replica is the prefix of the names of tensors of further models that train beside the first one. A process that
// loads the first model need not have them.
const replica = "replica."

// match pairs the tensors of a run, or some of them, with those of the checkpoint and reports every difference. It
// returns the parts to load.
func (m *manifest) match(tensors []Tensor, all bool) ([]want, error) {
	var problems []string
	wanted := map[string]bool{} // kinds
	for _, t := range tensors {
		wanted[t.kind()] = true
	}
	if (wanted[modelKind] || !all) && !m.has(averageKind) {
		wanted[averageKind] = false
	}
	if wanted[optimKind] && !m.has(optimKind) && m.has(modelKind) {
		return nil, errors.New("it holds only weights, no optimizer state: training cannot continue from it")
	}
	wants := make([]want, len(tensors))
	here := map[string]bool{}
	for i, t := range tensors {
		if !wanted[t.kind()] {
			continue
		}
		here[t.Name] = true
		have, ok := m.Tensors[t.Name]
		switch {
		case !ok || have.kind() != t.kind():
			problems = append(problems, fmt.Sprintf("tensor %q is missing from the checkpoint", t.Name))
		case t.DType != have.DType || !slices.Equal(t.Shape, have.Shape):
			problems = append(problems, fmt.Sprintf("tensor %q is %s [%s] in the checkpoint, but %s [%s] in this run",
				t.Name, have.DType, units.List("%d", have.Shape), t.DType, units.List("%d", t.Shape)))
		}
		s, err := t.Region.span(t.DType, t.Shape)
		if err != nil {
			return nil, err
		}
		wants[i] = want{t.Name, s, t.Data, t.Remote}
	}
	if all {
		problems = append(problems, m.leftOver(here, wanted)...)
	}
	return wants, asOne(problems)
}

// leftOver reports, as problems, the checkpoint's tensors of the wanted kinds that the run does not have.
func (m *manifest) leftOver(here, wanted map[string]bool) (problems []string) {
	for name, t := range m.Tensors {
		if !here[name] && wanted[t.kind()] && !strings.HasPrefix(name, replica) {
			problems = append(problems, fmt.Sprintf("tensor %q does not exist in this run", name))
		}
	}
	return problems
}

// asOne returns one error for several problems; nil if there are none.
func asOne(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	problems = slices.Compact(problems) // a tensor may be listed in several parts
	if n := len(problems); n > 8 {
		problems = append(problems[:8], fmt.Sprintf("and %d more", n-8))
	}
	return errors.New(strings.Join(problems, "; "))
}
