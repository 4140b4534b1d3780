package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	_ "anneal/internal/torture"
)

// The pictures in docs/img are up to date with this program.
func TestPicturesAreThoseOfTheDocs(t *testing.T) {
	for name, draw := range pictures {
		if there, err := os.ReadFile(filepath.Join("../../docs/img", name)); err != nil || !bytes.Equal(there, draw()) {
			t.Errorf("%s differs, or %v: go generate ./plan", name, err)
		}
	}
}

// In the drawn step, nothing begins before its inputs are ready: a unit computes forward after its weights arrive, and
// backward before its gradient is sent.
func TestTheDrawnStepIsPossible(t *testing.T) {
	for name, draw := range map[string]func() (lane, lane){"2": stage2, "3": stage3} {
		compute, link := draw()
		ends := map[string]float64{}
		for _, l := range []lane{compute, link} {
			for i, b := range l.bars {
				if i > 0 && b.from < l.bars[i-1].to {
					t.Errorf("stage %s: %s begins before %s ends", name, b.text, l.bars[i-1].text)
				}
				if _, again := ends[b.text]; !again {
					ends[b.text] = b.to
				}
			}
		}
		for _, b := range link.bars {
			if b.text[0] == 'g' && b.from < ends["B"+b.text[1:]] {
				t.Errorf("stage %s: %s leaves before it is made", name, b.text)
			}
		}
		for _, b := range compute.bars {
			if here, sent := ends["w"+b.text[1:]]; name == "3" && b.text[0] == 'F' && (!sent || b.from < here) {
				t.Errorf("stage 3: %s computes before its weights are here", b.text)
			}
		}
	}
}
