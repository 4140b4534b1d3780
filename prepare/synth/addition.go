package synth

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// An Addition text is a list of sums or differences of numbers of so many digits, all random and different:
// "123+456=9750" says that 123 + 456 = 0579. The digits of the answer are reversed, as carries go. Without Modulo an
// answer has a digit more than the numbers.
type Addition struct {
	Digits     int  // 1 to 6
	Subtract   bool // a − b instead of a + b; only with Modulo
	Modulo     bool // answers modulo 10^Digits
	Scratchpad bool // write steps before the answer (see Steps); not with Subtract
	Train, Val int  // examples
	Seed       uint64
}

// Text makes the text.
func (a Addition) Text() (Text, error) {
	if err := a.check(); err != nil {
		return Text{}, err
	}
	t, limit := Text{PromptEnd: "="}, a.limit()
	for _, pair := range draw(a.Train+a.Val, limit*limit, a.Seed) {
		x, y := pair/limit, pair%limit
		t.Train = append(t.Train, a.Prompt(x, y)+a.Answer(x, y))
	}
	t.Train, t.Val = t.Train[:a.Train], t.Train[a.Train:]
	return t, nil
}

func (a Addition) check() error {
	switch {
	case a.Digits < 1 || a.Digits > 6:
		return fmt.Errorf("numbers of %d digits: want 1 to 6", a.Digits)
	case a.Train < 1 || a.Val < 0 || a.Train+a.Val > a.limit()*a.limit():
		return fmt.Errorf("%d examples and %d held-out ones: numbers of %d digits have %d pairs", a.Train, a.Val,
			a.Digits, a.limit()*a.limit())
	case a.Subtract && !a.Modulo:
		return errors.New("a difference can be negative, so it needs modulo")
	case a.Subtract && a.Scratchpad:
		return errors.New("there is no scratchpad for differences")
	}
	return nil
}

// limit returns the number that all operands are below.
func (a Addition) limit() int { return int(math.Pow10(a.Digits)) }

// Prompt returns the question of x and y: "123+456=".
func (a Addition) Prompt(x, y int) string {
	sign := '+'
	if a.Subtract {
		sign = '-'
	}
	return fmt.Sprintf("%0*d%c%0*d=", a.Digits, x, sign, a.Digits, y)
}

// Answer returns the text after the prompt of x and y: the steps, if there is a Scratchpad, and the reversed digits of
// the result.
func (a Addition) Answer(x, y int) string {
	if a.Scratchpad {
		return a.Steps(x, y) + a.result(x, y)
	}
	return a.result(x, y)
}

// Steps returns the steps of an addition, lowest digit first: both digits, the digit of the sum and the carry, as in
// "3690;2570;1450;" for 123 + 456.
func (a Addition) Steps(x, y int) string {
	var s strings.Builder
	carry := 0
	for range a.Digits {
		sum := x%10 + y%10 + carry
		fmt.Fprintf(&s, "%d%d%d%d;", x%10, y%10, sum%10, sum/10)
		x, y, carry = x/10, y/10, sum/10
	}
	return s.String()
}

func (a Addition) result(x, y int) string {
	value, digits := x+y, a.Digits+1
	if a.Subtract {
		value = x - y
	}
	if a.Modulo {
		value, digits = (value+a.limit())%a.limit(), a.Digits
	}
	var s strings.Builder
	for range digits {
		fmt.Fprintf(&s, "%d", value%10)
		value /= 10
	}
	return s.String()
}

// Right reports whether a text, a prompt with its continuation, ends in the right answer. Only the answer counts, not
// the steps before it.
func (a Addition) Right(text string) bool {
	sign := "+"
	if a.Subtract {
		sign = "-"
	}
	prompt, answer, ok := strings.Cut(text, "=")
	first, second, two := strings.Cut(prompt, sign)
	var x, y int
	if _, err := fmt.Sscanf(first+" "+second, "%d %d", &x, &y); err != nil || !ok || !two {
		return false
	}
	if a.Scratchpad {
		answer = answer[strings.LastIndexByte(answer, ';')+1:]
	}
	return answer == a.result(x, y)
}
