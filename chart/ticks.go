package chart

import (
	"math"
	"strconv"
	"strings"

	"anneal/internal/units"
)

// ticks returns the values to label on an axis: at most about want round values in its range.
func (a Axis) ticks(s scale, want int) []float64 {
	if a.Ticks != nil {
		var list []float64
		for _, v := range a.Ticks {
			if s.has(v) && v >= s.min && v <= s.max {
				list = append(list, v)
			}
		}
		return list
	}
	if s.log {
		if list := logTicks(s, want); len(list) >= 2 {
			return list
		}
	}
	return linearTicks(s, want)
}

// linearTicks are multiples of 1, 2 or 5 times a power of ten.
func linearTicks(s scale, want int) []float64 {
	rough := (s.max - s.min) / float64(max(want, 1))
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= rough*(1-1e-9) {
			step = m * power
			break
		}
	}
	var list []float64
	for i := math.Ceil(s.min/step - 1e-9); i <= s.max/step+1e-9; i++ {
		list = append(list, i*step)
	}
	return list
}

// logTicks are powers of ten and, if those are few, also 2 and 5 times them.
func logTicks(s scale, want int) []float64 {
	low, high := int(math.Floor(math.Log10(s.min))), int(math.Ceil(math.Log10(s.max)))
	var list []float64
	add := func(v float64) {
		if v >= s.min*(1-1e-9) && v <= s.max*(1+1e-9) {
			list = append(list, v)
		}
	}
	if 3*(high-low) <= want+3 {
		for e := low; e <= high; e++ {
			for _, m := range []float64{1, 2, 5} {
				add(m * math.Pow10(e))
			}
		}
		return list
	}
	stride := (high - low + want) / max(want, 1)
	for e := low; e <= high; e++ {
		if e%stride == 0 {
			add(math.Pow10(e))
		}
	}
	return list
}

// Number writes a value in the format of tick labels: four digits, with powers of ten if that is shorter.
func Number(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if v == 0 {
		return "0"
	}
	switch a := math.Abs(v); {
	case a >= 1e3 && a < 1e6: // four digits leave no fraction
		return units.Commas(int64(v))
	case a >= 1e-3 && a < 1e3:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(exponent)
	return mantissa + "e" + strconv.Itoa(n)
}
