package units

import (
	"math"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "7": 7, "-3": -3, "2_000": 2000, "2e3": 2000, "2K": 2000, "2k": 2000, "1.1M": 1_100_000, "1B": 1e9,
		"3G": 3e9, "2T": 2e12, "64Ki": 65536, "1.5Mi": 1.5 * (1 << 20), " 4 Gi ": 4 << 30, ".5K": 500,
	} {
		if got, err := Number(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "K", "x", "1KM", "1 2", "1e400", "nan", "inf", "1.2.3", "5 hours", "1KiB"} {
		if got, err := Number(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"9223372036854775807": 1<<63 - 1, "1.5K": 1500, "1e6": 1_000_000, "-2Ki": -2048, "1_0": 10,
	} {
		if got, err := Int(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"1.5", "9223372036854775808", "1e30", "0x10"} {
		if got, err := Int(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "4096": 4096, "5B": 5, "2KB": 2000, "2KiB": 2048, "2k": 2000, "2Ki": 2048, "1.5GiB": 3 << 29,
		"1.5 gb": 1.5e9, "3TiB": 3 << 40,
	} {
		if got, err := Bytes(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1GiB", "GiB", "1e30", "1bb", "5 apples", "1 MiBB"} {
		if got, err := Bytes(text); err == nil {
			t.Errorf("%q is taken for %v bytes", text, got)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "3": 3 * time.Minute, "0.5": 30 * time.Second, "90s": 90 * time.Second, "1h30m": 90 * time.Minute,
		"30m": 30 * time.Minute, "1h 30m": 90 * time.Minute,
		"-2": -2 * time.Minute, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0.5 d": 12 * time.Hour,
	} {
		if got, err := Duration(text, time.Minute); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "m", "3 minutes", "1dd", "d", "1d-1h", "NaNd", "1e9d", "5days", "NaN", "1e30"} {
		if got, err := Duration(text, time.Minute); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 500 << 10: "500 KiB", 1<<20 - 1: "1.0 MiB", 3 << 19: "1.5 MiB",
		483 << 20: "483 MiB", 9999 << 20: "9,999 MiB", 1000 << 20: "1,000 MiB", 10000 << 20: "9.8 GiB",
		1103 << 30: "1,103.0 GiB", 1103 << 40: "1,129,472.0 GiB",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestNumbersWithCommas(t *testing.T) {
	for n, want := range map[int]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", -999: "-999", -1000: "-1,000", 65536: "65,536", 1234567: "1,234,567",
	} {
		if got := Commas(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
	if got := Commas(uint64(math.MaxUint64)); got != "18,446,744,073,709,551,615" {
		t.Error(got)
	}
	for _, c := range []struct {
		n     int
		thing string
		want  string
	}{{0, "copy", "0 copies"}, {1, "copy", "1 copy"}, {2, "key", "2 keys"},
		{1, "file", "1 file"}, {2000, "file", "2,000 files"}} {
		if got := Count(c.n, c.thing); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 4_500_000_000: "4.5 GB",
		2e15: "2,000.0 TB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d bytes are written %s, want %s", n, got, want)
		}
	}
}

func TestListsAndRates(t *testing.T) {
	if got := List("%d", []int{20, 30, 40}); got != "20, 30, 40" {
		t.Error(got)
	}
	for x, want := range map[float64]string{
		0: "an unknown rate", 0.25: "0.25 GFLOP/s", 3.14: "3.1 GFLOP/s", 212.4: "212 GFLOP/s",
	} {
		if got := Rate(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}
