package checkpoint

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// A Checker is a state that can detect impossible values. LoadLatest and related functions decode it and then call
// Check with the manifest's step and tokens; an error counts as damage.
type Checker interface {
	Check(step, tokens int64) error
}

// decodeState fills state from the text of state.json. If the text does not parse, or gives an impossible state, it
// returns a *Fault and does not change state.
func (e *Entry) decodeState(text []byte, state any) error {
	pointer := reflect.ValueOf(state)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() {
		return fmt.Errorf("checkpoint: a state is read into a pointer, not a %T", state)
	}
	into := pointer.Elem()
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
		return &Fault{Checkpoint: e.Name, File: stateName, Offset: -1,
			Err: fmt.Errorf("it is not the state of a run: %w", err)}
	}
	into.Set(fresh.Elem())
	return nil
}
