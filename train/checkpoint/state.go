package checkpoint

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// A Checker is a state that knows which values it cannot have. LoadLatest and its kin call Check after they have decoded it, with
// what the manifest says; an error counts as damage.
type Checker interface {
	Check(step, tokens int64) error
}

// decodeState fills state from the text of state.json. A text that does not parse, or that makes an impossible state, is a *Fault
// and leaves state as it was.
func (e *Entry) decodeState(text []byte, state any) error {
	into := reflect.ValueOf(state).Elem()
	fresh := reflect.New(into.Type())
	fresh.Elem().Set(into)
	err := stateMost.Check(text)
	if err == nil {
		err = json.Unmarshal(text, fresh.Interface())
	}
	if c, ok := fresh.Interface().(Checker); ok && err == nil {
		err = c.Check(e.Step, e.Tokens)
	}
	if err != nil {
		return &Fault{Checkpoint: e.Name, File: stateName, Offset: -1, Err: fmt.Errorf("it is not the state of a run: %w", err)}
	}
	into.Set(fresh.Elem())
	return nil
}
