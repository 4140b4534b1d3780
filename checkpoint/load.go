package checkpoint

import (
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/fileio"
	"anneal/internal/units"
)

// LoadLatest fills tensors and state from the newest checkpoint under root that verifies. Info.Skipped lists the
// newer ones that do not, with the reason. tensors must be exactly the checkpoint's weights, exactly its optimizer
// state, exactly its average, or several of these. If the checkpoint has weights but no average, the average's
// tensors do not change and Info.Averaged is false. state is a pointer for json.Unmarshal, or nil. If the directory
// has no checkpoint the error is ErrNone. After an error the contents of the tensors are undefined.
//
// It needs no lock: another process may train and save at the same time.
func LoadLatest(root string, tensors []Tensor, state any) (info Info, err error) {
	skipped, err := newest(root, func(e *Entry) error {
		info, err = e.load(root, tensors, state)
		return err
	})
	info.Skipped = skipped
	return info, err
}

// LoadState is LoadLatest for the state alone: it reads no tensor.
func LoadState(root string, state any) (info Info, err error) {
	skipped, err := newest(root, func(e *Entry) error {
		info, err = e.fill(root, nil, state)
		return err
	})
	info.Skipped = skipped
	return info, err
}

// newest calls use with the usable checkpoints from newest to oldest until it returns no *Fault, and returns the
// faults of the newer ones. If all fail because a writer replaced them, it starts over.
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
			return nil, fmt.Errorf("checkpoint: no checkpoint in %s is usable:\n%w", root, errors.Join(faults...))
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
	return e.load(root, tensors, state)
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
	return e.fill(root, nil, state)
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
	return nil, fmt.Errorf("checkpoint: %s: %w of step %d\n  its checkpoints are of steps %s", root, ErrNone, step, strings.Join(steps, ", "))
}

// load fills tensors and state from one checkpoint. Damage is a *Fault.
func (e *Entry) load(root string, tensors []Tensor, state any) (Info, error) {
	if err := checkTensors(tensors); err != nil {
		return Info{}, err
	}
	dst, err := e.manifest.match(tensors)
	if err != nil {
		return Info{}, fmt.Errorf("checkpoint: %s %w: %w", e.Name, ErrOtherModel, err)
	}
	info, err := e.fill(root, dst, state)
	if err != nil {
		return info, err
	}
	for _, t := range tensors {
		if t.Remote == nil || dst[t.Name] == nil {
			continue
		}
		if err := t.Remote.Write(dst[t.Name]); err != nil {
			return info, fmt.Errorf("checkpoint: %s: tensor %q: %w", e.Name, t.Name, err)
		}
	}
	return info, nil
}

// fill reads the state and the tensors that have memory in dst.
func (e *Entry) fill(root string, dst map[string][]byte, state any) (Info, error) {
	r := e.reader(root)
	var stateText []byte
	for _, f := range e.manifest.Files {
		switch {
		case f.Name == stateName:
			// Memory for a file is only allocated if the file on disk has the manifest's size.
			if st, err := os.Stat(filepath.Join(r.dir, f.Name)); err == nil && st.Size() == f.Size {
				stateText = make([]byte, f.Size)
			}
			if err := r.read(f, map[string][]byte{"": stateText}, nil); err != nil {
				return Info{}, err
			}
		case slices.ContainsFunc(e.manifest.placed(f.Name), func(t placedTensor) bool { return dst[t.name] != nil }):
			if err := r.read(f, dst, nil); err != nil {
				return Info{}, err
			}
		}
	}
	if state != nil {
		if err := e.decodeState(stateText, state); err != nil {
			return Info{}, err
		}
	}
	return e.info(root)
}

// match pairs the tensors of a run with those of the checkpoint and reports every difference. It allocates memory for
// remote tensors.
func (m *manifest) match(tensors []Tensor) (map[string][]byte, error) {
	var problems []string
	dst := make(map[string][]byte, len(tensors))
	wanted := map[string]bool{} // files
	for _, t := range tensors {
		wanted[t.file()] = true
	}
	if wanted[modelName] && len(m.placed(averageName)) == 0 {
		wanted[averageName] = false
	}
	if wanted[optimName] && len(m.placed(optimName)) == 0 && len(m.placed(modelName)) > 0 {
		return nil, errors.New("it holds only weights, no optimizer state: training cannot continue from it")
	}
	for _, t := range tensors {
		if !wanted[t.file()] {
			continue
		}
		have, ok := m.Tensors[t.Name]
		switch {
		case !ok || have.File != t.file():
			problems = append(problems, fmt.Sprintf("tensor %q is missing from the checkpoint", t.Name))
		case t.DType != have.DType || !slices.Equal(t.Shape, have.Shape):
			problems = append(problems, fmt.Sprintf("tensor %q is %s [%s] in the checkpoint, but %s [%s] in this run", t.Name, have.DType, units.List("%d", have.Shape), t.DType, units.List("%d", t.Shape)))
		}
		if dst[t.Name] = t.Data; t.Remote != nil {
			dst[t.Name] = make([]byte, t.Bytes())
		}
	}
	for name, t := range m.Tensors {
		if _, ok := dst[name]; !ok && wanted[t.File] {
			problems = append(problems, fmt.Sprintf("tensor %q does not exist in this run", name))
		}
	}
	if len(problems) == 0 {
		return dst, nil
	}
	slices.Sort(problems)
	if n := len(problems); n > 8 {
		problems = append(problems[:8], fmt.Sprintf("and %d more", n-8))
	}
	return nil, errors.New(strings.Join(problems, "; "))
}

// LoadLatest is the function LoadLatest for the store's directory. It also warns of skipped checkpoints, remembers
// them, and repairs the pointer to the latest checkpoint.
func (s *Store) LoadLatest(tensors []Tensor, state any) (Info, error) {
	if err := s.Wait(); err != nil {
		return Info{}, err
	}
	info, err := LoadLatest(s.root, tensors, state)
	if err != nil {
		return info, err
	}
	for _, err := range info.Skipped {
		s.opt.Log.Warn("checkpoint skipped", "fault", err, "using", info.Name)
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			s.bad[fault.Checkpoint] = true
		}
	}
	return info, s.goOn(info)
}

// LoadStep is the function LoadStep for the store's directory. The next save continues from there: it counts as newer
// than existing checkpoints of later steps.
func (s *Store) LoadStep(step int64, tensors []Tensor, state any) (Info, error) {
	if err := s.Wait(); err != nil {
		return Info{}, err
	}
	info, err := LoadStep(s.root, step, tensors, state)
	if err != nil {
		return info, err
	}
	return info, s.goOn(info)
}

// goOn makes a loaded checkpoint the parent of the next one, and points latest at it.
func (s *Store) goOn(info Info) error {
	s.parent = info.Name
	for _, name := range info.Ignored {
		s.opt.Log.Warn("ignored an unknown file in a checkpoint", "checkpoint", info.Name, "file", name)
	}
	text, err := fileio.ReadSmall(s.path("latest"), 4096)
	if err == nil && strings.TrimSpace(string(text)) == info.Name {
		return nil
	}
	if err := s.publish(info.Name); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// Hash returns the hashes of HashTensors for the newest checkpoint under root that verifies, and what [LoadLatest]
// says of it.
func Hash(root string) (weights, optimizer string, info Info, err error) {
	skipped, err := newest(root, func(e *Entry) (err error) {
		info = e.Info
		weights, optimizer, err = e.hash(root)
		return err
	})
	info.Skipped = skipped
	return weights, optimizer, info, err
}

// hash reads and verifies all tensors once.
func (e *Entry) hash(root string) (weights, optimizer string, err error) {
	r := e.reader(root)
	var w, o digests
	for _, f := range e.manifest.Files {
		if !strings.HasSuffix(f.Name, ".safetensors") {
			continue
		}
		d := &o
		if f.Name == modelName {
			d = &w
		}
		hashes := map[string]hash.Hash{}
		for _, t := range e.manifest.placed(f.Name) {
			hashes[t.name] = newTensorHash(t.name, t.DType, t.Shape)
		}
		err := r.read(f, nil, func(tensor string, p []byte) {
			if h := hashes[tensor]; h != nil {
				h.Write(p)
			}
		})
		if err != nil {
			return "", "", err
		}
		for name, h := range hashes {
			*d = append(*d, digest{name, h.Sum(nil)})
		}
	}
	return w.sum(), o.sum(), nil
}
