package cluster

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"anneal/internal/nearest"
)

// ParseMesh reads dp=16,tp=8,pp=8 into a mesh; keys are dp, tp, pp, vpp, cp and ep. What is left out is 1, and dp
// what is left of the devices. It reports everything that is wrong at once.
func ParseMesh(text string, devices int) (Mesh, error) {
	m := Mesh{Tensor: 1, Pipeline: 1, Chunks: 1, Context: 1, Expert: 1}
	fields := map[string]*int{
		"dp": &m.Data, "tp": &m.Tensor, "pp": &m.Pipeline, "vpp": &m.Chunks, "cp": &m.Context, "ep": &m.Expert,
	}
	var faults []error
	given := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		key = strings.TrimSpace(key)
		n, err := strconv.Atoi(strings.TrimSpace(value))
		again := given[key]
		given[key] = true
		switch at := fields[key]; {
		case at == nil:
			hint := ""
			if near := nearest.To(key, []string{"dp", "tp", "pp", "vpp", "cp", "ep"}); near != "" {
				hint = "did you mean " + near + "? "
			}
			faults = append(faults, fmt.Errorf("the mesh has %q: %suse dp, tp, pp, vpp, cp and ep, such as dp=16,tp=8",
				part, hint))
		case again:
			faults = append(faults, fmt.Errorf("the mesh has %s twice", key))
		case err != nil || n < 1 || n > 1<<22:
			faults = append(faults, fmt.Errorf("the mesh has %q, must be a number from 1 to %d", part, 1<<22))
		default:
			*at = n
		}
	}
	if err := errors.Join(faults...); err != nil {
		return Mesh{}, err
	}
	if m.Data == 0 {
		m.Data = max(1, devices/(m.Tensor*m.Pipeline*m.Context))
	}
	m.Sequence = m.Tensor > 1
	m.SetChunks(m.Chunks)
	return m, nil
}

// SetChunks sets the chunks of layers on each stage, and the schedule that goes with them.
func (m *Mesh) SetChunks(chunks int) {
	m.Chunks, m.Schedule = chunks, "1f1b"
	if chunks > 1 {
		m.Schedule = fmt.Sprintf("interleaved:%d", chunks)
	}
}

// String returns what ParseMesh reads, with the rest of the mesh behind it.
func (m Mesh) String() string {
	text := fmt.Sprintf("dp=%d,tp=%d,pp=%d", m.Data, m.Tensor, m.Pipeline)
	for _, x := range []struct {
		key string
		n   int
	}{{"vpp", m.Chunks}, {"cp", m.Context}, {"ep", m.Expert}} {
		if x.n > 1 {
			text += fmt.Sprintf(",%s=%d", x.key, x.n)
		}
	}
	return fmt.Sprintf("%s zero=%d micro=%d recompute=%s", text, m.Zero, m.Micro, m.Recompute)
}
