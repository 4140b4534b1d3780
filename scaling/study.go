package scaling

import (
	"encoding/json"
	"fmt"
	"io"
)

// Write writes a fit as JSON.
func (f *Fit) Write(w io.Writer) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// ReadFit reads a fit that Write wrote.
func ReadFit(text []byte) (*Fit, error) {
	var f Fit
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("not a fit of `anneal scaling fit`: %w", err)
	}
	if list := f.Law.undetermined(); len(list) > 0 {
		return nil, fmt.Errorf("not a fit of `anneal scaling fit`: its law is %+v", f.Law)
	}
	for i, l := range append([]Law{f.Law}, f.Resamples...) {
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("not a fit of `anneal scaling fit`: in law %d, %w", i, err)
		}
	}
	for i, p := range f.Points {
		if !(p.Params > 0 && p.Tokens > 0 && p.Loss > 0 && p.FLOPs > 0 && p.Unique > 0) {
			return nil, fmt.Errorf("not a fit of `anneal scaling fit`: point %d is %+v", i, p)
		}
	}
	return &f, nil
}
