package cluster

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"anneal/internal/nearest"
)

// ParseMesh parses text such as dp=16,tp=8,pp=8. It returns the mesh and the axes that the text gives; keys are dp,
// tp, pp, vpp, cp and ep. Missing axes are 1, but a missing dp takes the remaining devices. It reports all errors at
// once.
func ParseMesh(text string, devices int) (Mesh, Axes, error) {
	m := Mesh{Tensor: 1, Pipeline: 1, Chunks: 1, Context: 1, Expert: 1}
	fields := map[string]*int{
		"dp": &m.Data, "tp": &m.Tensor, "pp": &m.Pipeline, "vpp": &m.Chunks, "cp": &m.Context, "ep": &m.Expert,
	}
	var faults []error
	given := Axes{}
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
		return Mesh{}, nil, err
	}
	if m.Data == 0 {
		m.Data = max(1, int(float64(devices)/(float64(m.Tensor)*float64(m.Pipeline)*float64(m.Context))))
	}
	m.Sequence = m.Tensor > 1
	m.SetChunks(m.Chunks)
	return m, given, nil
}

// SetChunks sets the number of chunks of layers on each stage, and the matching schedule.
func (m *Mesh) SetChunks(chunks int) {
	m.Chunks, m.Schedule = chunks, "1f1b"
	if chunks > 1 {
		m.Schedule = fmt.Sprintf("interleaved:%d", chunks)
	}
}

// An axis of a mesh with its size.
type axis struct {
	key string
	n   int
}

func (m Mesh) sizes() []axis {
	return []axis{{"dp", m.Data}, {"tp", m.Tensor}, {"pp", m.Pipeline}, {"vpp", m.Chunks}, {"cp", m.Context},
		{"ep", m.Expert}}
}

// String returns the text that ParseMesh reads, followed by the rest of the mesh.
func (m Mesh) String() string {
	var list []string
	for i, x := range m.sizes() {
		if i < 3 || x.n > 1 {
			list = append(list, fmt.Sprintf("%s=%d", x.key, x.n))
		}
	}
	return fmt.Sprintf("%s zero=%d micro=%d recompute=%s", strings.Join(list, ","), m.Zero, m.Micro, m.Recompute)
}
