package floats

import "testing"

// Codes and scales equal those computed by hand: the largest of 32 weights has the code 127, and halves round away
// from zero.
func TestToQ8(t *testing.T) {
	values := [Q8Block]float32{0: 2 * 127, 1: -2 * 127, 2: 3, 3: -3, 4: 0.9}
	var codes [Q8Block]int8
	if scale := FromF16(ToQ8(&codes, &values)); scale != 2 {
		t.Errorf("the scale is %v, want 2", scale)
	}
	if want := [Q8Block]int8{127, -127, 2, -2, 0}; codes != want {
		t.Errorf("codes are %v, want %v", codes, want)
	}
	if scale := FromF16(ToQ8(&codes, &[Q8Block]float32{})); scale != 0 || codes != [Q8Block]int8{} {
		t.Errorf("zeros have the scale %v and the codes %v", scale, codes)
	}
}
