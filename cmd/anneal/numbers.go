package main

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"anneal/internal/units"

	"github.com/alecthomas/kong"
)

// quantities lets flags for whole numbers take 2K, 1.5M or 64Ki, and flags for times 90s, 30m or 1h30m.
var quantities = []kong.Option{
	kong.KindMapper(reflect.Int, kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("number", &text); err != nil {
			return err
		}
		n, err := units.Int(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number, such as 2000, 2K or 64Ki", text)
		}
		target.SetInt(n)
		return nil
	})),
	kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(
		ctx *kong.DecodeContext, target reflect.Value,
	) error {
		var text string
		if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
			return err
		}
		d, err := readDuration(text, time.Minute)
		target.SetInt(int64(d))
		return err
	})),
}

// readDuration reads a time; a plain number counts units.
func readDuration(text string, unit time.Duration) (time.Duration, error) {
	d, err := units.Duration(text, unit)
	if err == nil && d < 0 {
		err = fmt.Errorf("below 0")
	}
	if err != nil {
		return 0, fmt.Errorf("%q is %w", text, err)
	}
	return d, nil
}

// inMinutes is a time on the command line, such as 3, 30m or 1h30m.
type inMinutes float64

func (m *inMinutes) UnmarshalText(text []byte) error {
	d, err := readDuration(string(text), time.Minute)
	*m = inMinutes(d.Minutes())
	return err
}

func (m inMinutes) duration() time.Duration { return time.Duration(float64(m) * float64(time.Minute)) }

// inSeconds is a time on the command line, such as 0.5, 10s or 1m.
type inSeconds float64

func (s *inSeconds) UnmarshalText(text []byte) error {
	d, err := readDuration(string(text), time.Second)
	*s = inSeconds(d.Seconds())
	return err
}

// count is a number of something on the command line, where 0 often stands for "all" or "no limit".
type count int

// Validate is called by the parser, which names the flag.
func (n count) Validate() error {
	if n < 0 {
		return fmt.Errorf("%d is negative", n)
	}
	return nil
}

// port is a TCP port on the command line; 0 is any free one.
type port int

// Validate is called by the parser, which names the flag.
func (n port) Validate() error {
	if n < 0 || n > 65535 {
		return fmt.Errorf("%d is not a port: they go to 65535, and 0 is any free one", n)
	}
	return nil
}

// tokens is a number of tokens on the command line, such as 1e9, 500M or 1B.
type tokens int64

func (n *tokens) UnmarshalText(text []byte) error {
	x, err := units.Number(string(text))
	if err != nil || !(x >= 0 && x < 1<<60) {
		return fmt.Errorf("%q is not a number of tokens; try 500M or 1B", text)
	}
	*n = tokens(x)
	return nil
}

// amount is a quantity on the command line that may be a fraction.
type amount float64

// Validate is called by the parser, which names the flag.
func (a amount) Validate() error {
	if !(a >= 0) || math.IsInf(float64(a), 0) {
		return fmt.Errorf("%v is not a finite number of at least 0", float64(a))
	}
	return nil
}
