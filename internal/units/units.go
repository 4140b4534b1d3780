// Package units reads and writes quantities as people do: 2M, 64Ki, 1.5GiB, 1h30m.
package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// multiples are the suffixes of numbers: K, M, B or G, and T are powers of 1000; Ki, Mi, Gi and Ti are powers of 1024.
var multiples = map[string]float64{
	"": 1, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
}

var errNumber = errors.New("not a number, such as 2000, 2K, 1.5M or 64Ki")

// Number reads a number with or without a suffix: 2000, 2_000, 2e3, 1.5M, 64Ki.
func Number(text string) (float64, error) {
	number, unit := split(text)
	scale, known := multiples[unit]
	x, err := strconv.ParseFloat(number, 64)
	if x *= scale; err != nil || !known || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, errNumber
	}
	if unit != "" {
		x = math.Round(x*1e6) / 1e6 // 1.1M is 1,100,000, not a little more
	}
	return x, nil
}

// Int reads a whole number as Number does.
func Int(text string) (int64, error) {
	if n, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSpace(text), "_", ""), 10, 64); err == nil {
		return n, nil
	}
	x, err := Number(text)
	if err == nil && (x != math.Trunc(x) || math.Abs(x) > 1<<53) {
		err = errNumber
	}
	return int64(x), err
}

// Bytes reads an amount of memory, at least a byte: 512MiB, 2GiB, 1.5GB, 64Ki, 4096.
func Bytes(text string) (int64, error) {
	number, unit := split(text)
	unit = strings.TrimSuffix(unit, "b") // MB is M, MiB is Mi
	scale, known := multiples[unit]
	known = known && unit != "b"
	x, err := strconv.ParseFloat(number, 64)
	if x *= scale; err != nil || !known || !(x >= 1 && x < 1<<58) {
		return 0, errors.New("not an amount of memory, such as 512MiB or 2GiB")
	}
	return int64(x), nil
}

// Duration reads a time such as 90s, 30m, 1h30m or 30d, or a plain number, which counts units.
func Duration(text string, unit time.Duration) (time.Duration, error) {
	name := map[time.Duration]string{time.Second: "seconds", time.Minute: "minutes"}[unit]
	wrong := fmt.Errorf("not a duration, such as 90s, 30m or 1h30m, or a number of %s", name)
	text = strings.ReplaceAll(strings.TrimSpace(text), "_", "")
	text = strings.ReplaceAll(text, " ", "")
	if d, err := time.ParseDuration(text); err == nil && text != "0" {
		return d, nil
	}
	if days, hours, found := strings.Cut(text, "d"); found {
		x, err := strconv.ParseFloat(days, 64)
		rest, other := time.ParseDuration("0s" + hours)
		if d := x*24*float64(time.Hour) + float64(rest); err == nil && other == nil && math.Abs(d) < math.MaxInt64 {
			return time.Duration(d), nil
		}
		return 0, wrong
	}
	x, err := strconv.ParseFloat(text, 64)
	if d := x * float64(unit); err == nil && math.Abs(d) < math.MaxInt64 {
		return time.Duration(d), nil
	}
	return 0, wrong
}

// split cuts a text into a number, without its underscores, and its suffix, in small letters.
func split(text string) (number, unit string) {
	text = strings.ReplaceAll(strings.TrimSpace(text), "_", "")
	end := strings.LastIndexAny(text, "0123456789.") + 1
	return text[:end], strings.ToLower(strings.TrimSpace(text[end:]))
}

// FormatBytes writes an amount of memory with the unit that makes it readable: 0 B, 12 KiB, 1.5 MiB, 4,083 MiB, 22.1
// GiB.
func FormatBytes(n int64) string {
	x := float64(n)
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case x < 1023.5*(1<<10):
		return fmt.Sprintf("%.0f KiB", x/(1<<10))
	case x < 9.95*(1<<20):
		return fmt.Sprintf("%.1f MiB", x/(1<<20))
	case x < 9999.5*(1<<20):
		return commas(strconv.FormatFloat(x/(1<<20), 'f', 0, 64)) + " MiB"
	}
	return commas(strconv.FormatFloat(x/(1<<30), 'f', 1, 64)) + " GiB"
}

// FormatSize writes the size of a file or a text with a decimal unit: 812 B, 12.3 kB, 4.5 GB.
func FormatSize(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x := float64(n)
	for _, unit := range []string{"kB", "MB", "GB"} {
		if x /= 1000; x < 999.95 {
			return fmt.Sprintf("%.1f %s", x, unit)
		}
	}
	return commas(strconv.FormatFloat(x/1000, 'f', 1, 64)) + " TB"
}

// Commas writes a whole number with commas: 65,536.
func Commas[N ~int | ~int64 | ~uint64](n N) string { return commas(fmt.Sprint(n)) }

// commas puts a comma between groups of three digits before the decimal point.
func commas(number string) string {
	for i := strings.IndexByte(number+".", '.') - 3; i > 0 && number[i-1] != '-'; i -= 3 {
		number = number[:i] + "," + number[i:]
	}
	return number
}

// Count writes a number of things: 1 document, 2,000 documents, 0 copies.
func Count(n int, thing string) string {
	stem, y := strings.CutSuffix(thing, "y")
	switch {
	case n == 1:
	case y && !strings.ContainsAny(stem[max(len(stem)-1, 0):], "aeiou"):
		thing = stem + "ies"
	default:
		thing += "s"
	}
	return Commas(n) + " " + thing
}

// List writes values with commas between them, each by a format such as %d.
func List[T any](format string, values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf(format, v)
	}
	return strings.Join(words, ", ")
}

// Rate writes GFLOP/s, with decimals if the rate is small; 0 is unknown.
func Rate(gflops float64) string {
	switch {
	case !(gflops > 0):
		return "an unknown rate"
	case gflops < 10:
		return fmt.Sprintf("%.2g GFLOP/s", gflops)
	}
	return fmt.Sprintf("%.0f GFLOP/s", gflops)
}
