package model

import (
	"encoding/json"

	"anneal/nn"
)

// UnmarshalJSON reads the shape of a checkpoint into c; fields that text leaves out keep their values. Early versions
// saved the scaling and the layout of rotary positions, and muP, in other forms.
func (c *Config) UnmarshalJSON(text []byte) error {
	type plain Config
	saved := struct {
		*plain
		RopeScaling     earlyScaling
		RopeInterleaved bool
		MuP             earlyMuP
	}{plain: (*plain)(c)}
	saved.RopeScaling.scaling, saved.MuP.on = c.RopeScaling, c.MuP
	if err := json.Unmarshal(text, &saved); err != nil {
		return err
	}
	c.RopeScaling, c.MuP = saved.RopeScaling.scaling, saved.MuP.on
	if saved.RopeInterleaved {
		c.RopeLayout = "interleaved"
	}
	if saved.RopeScaling.early {
		c.RopeOriginalContext = saved.RopeScaling.original
	}
	if m := saved.MuP; m.on && m.early {
		c.MuPBaseDim, c.MuPBaseHeadDim, c.MuPBaseFFN, c.MuPBaseLayers = m.Dim, m.HeadDim, m.FFN, m.Layers
		c.MuPInputScale, c.MuPOutputScale = m.InputScale, m.OutputScale
	}
	return nil
}

// earlyScaling is a scaling as text, or as an early version saved it: an object of its fields.
type earlyScaling struct {
	scaling  nn.RoPEScaling
	original int // context, of the early form
	early    bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *earlyScaling) UnmarshalJSON(text []byte) error {
	if s.early = isObject(text); !s.early {
		return json.Unmarshal(text, &s.scaling)
	}
	type fields nn.RoPEScaling // which has no text form
	saved := struct {
		*fields
		Original *int
	}{(*fields)(&s.scaling), &s.original}
	return json.Unmarshal(text, &saved)
}

// earlyMuP is whether muP is on. An early version saved its base model instead, with the width 0 if muP was off.
type earlyMuP struct {
	on, early                 bool
	Dim, HeadDim, FFN, Layers int
	InputScale, OutputScale   float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *earlyMuP) UnmarshalJSON(text []byte) error {
	if m.early = isObject(text); !m.early {
		return json.Unmarshal(text, &m.on)
	}
	type fields earlyMuP
	err := json.Unmarshal(text, (*fields)(m))
	m.on = m.Dim > 0
	return err
}

func isObject(text []byte) bool { return len(text) > 0 && text[0] == '{' }
