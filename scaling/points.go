package scaling

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"anneal/internal/units"
)

// Point is a trained model and its loss.
type Point struct {
	Params float64 `json:"params"`
	Tokens float64 `json:"tokens"`        // training tokens, including repeated ones
	Loss   float64 `json:"loss"`          // of held-out text, nats per token
	FLOPs  float64 `json:"flops"`         // of its training; 0 stands for 6·N·D
	Unique float64 `json:"unique_tokens"` // different tokens among them; 0 stands for Tokens: none was repeated
}

// withDefaults returns the point with what its zeros stand for.
func (p Point) withDefaults() Point {
	p.FLOPs = cmp.Or(p.FLOPs, Training(p.Params, p.Tokens))
	p.Unique = cmp.Or(p.Unique, p.Tokens)
	return p
}

// checked returns the points with what their zeros stand for, or a *PointsError that lists the numbers no model has.
func checked(points []Point) ([]Point, error) {
	list := make([]Point, len(points))
	var faults []string
	for i, p := range points {
		p = p.withDefaults()
		for j, v := range []float64{p.Params, p.Tokens, p.Loss, p.FLOPs, p.Unique} {
			if wrong := implausible(columns[j], v); wrong != "" {
				faults = append(faults, fmt.Sprintf("point %d: %s", i, wrong))
			}
		}
		list[i] = p
	}
	if len(faults) > 0 {
		return nil, &PointsError{faults}
	}
	return list, nil
}

// worth returns the number of tokens read once that are worth as much as the point's tokens.
func (p Point) worth() float64 { return EffectiveTokens(p.Tokens, p.Unique) }

// A fit of five numbers needs at least six points, and three values of N and of D, because two values do not determine
// an exponent.
const leastPoints, leastValues = 6, 3

// PointsError explains why points cannot be used. It has all reasons.
type PointsError struct{ Reasons []string }

// mostReasons is how many reasons a PointsError prints.
const mostReasons = 12

func (e *PointsError) Error() string {
	list := e.Reasons
	if more := len(list) - mostReasons; more > 0 {
		list = append(slices.Clone(list[:mostReasons]), fmt.Sprintf("and %d more", more))
	}
	return "these points cannot be fitted\n  " + strings.Join(list, "\n  ")
}

// The columns of a CSV of points; the first three are required.
var columns = []string{"params", "tokens", lossColumn, "flops", "unique_tokens"}

const (
	requiredColumns = 3
	lossColumn      = "loss"
	byteOrderMark   = "\ufeff" // at the beginning of text that spreadsheets write
)

// ReadPoints reads a CSV whose header names the columns params, tokens, loss, and optionally flops (default: 6·N·D) and
// unique_tokens (default: tokens). Other columns are ignored. The error is a *PointsError with every fault of the file,
// each with its line.
func ReadPoints(r io.Reader) ([]Point, error) {
	text := bufio.NewReader(r)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		text.Discard(len(byteOrderMark))
	}
	in := csv.NewReader(text)
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = true
	in.ReuseRecord = true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, &PointsError{[]string{"the file is empty: its first line must name the columns params,tokens,loss"}}
	}
	if err != nil {
		return nil, &PointsError{[]string{err.Error()}}
	}
	at, err := findColumns(header)
	if err != nil {
		return nil, err
	}
	var points []Point
	var faults []string
	for width := len(header); ; {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			faults = append(faults, err.Error()) // it names the line
			if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
				continue
			}
			break
		}
		line, _ := in.FieldPos(0)
		if len(record) != width {
			faults = append(faults, fmt.Sprintf("line %d has %d values, the header %d", line, len(record), width))
			continue
		}
		p, wrong := readPoint(record, at)
		for _, w := range wrong {
			faults = append(faults, fmt.Sprintf("line %d: %s", line, w))
		}
		points = append(points, p)
	}
	if len(faults) == 0 { // lines that cannot be read have no values to count
		faults = tooFew(points)
	}
	if len(faults) > 0 {
		return nil, &PointsError{faults}
	}
	return points, nil
}

// findColumns returns the position of each of columns in the header; −1 for a missing optional column.
func findColumns(header []string) ([]int, error) {
	at := make([]int, len(columns))
	var faults []string
	for i, name := range columns {
		at[i] = -1
		for j, h := range header {
			if strings.EqualFold(strings.TrimSpace(h), name) {
				if at[i] >= 0 {
					faults = append(faults, fmt.Sprintf("line 1 names the column %s twice", name))
				}
				at[i] = j
			}
		}
		if at[i] < 0 && i < requiredColumns {
			faults = append(faults, fmt.Sprintf("line 1 does not name the column %s: it has %.100q",
				name, strings.Join(header, ",")))
		}
	}
	if len(faults) > 0 {
		return nil, &PointsError{faults}
	}
	return at, nil
}

// beyond is larger than any quantity of a model, but small enough that its powers stay in the range of float64.
const beyond = 1e50

// readPoint reads a line of the file, and returns its mistakes.
func readPoint(record []string, at []int) (p Point, wrong []string) {
	for i, to := range []*float64{&p.Params, &p.Tokens, &p.Loss, &p.FLOPs, &p.Unique} {
		if at[i] < 0 || i >= requiredColumns && strings.TrimSpace(record[at[i]]) == "" {
			continue
		}
		text := strings.TrimSpace(record[at[i]])
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s is %.40q, not a number such as 1.2e9", columns[i], text))
		} else if w := implausible(columns[i], v); w != "" {
			wrong = append(wrong, w)
		}
		*to = v
	}
	given := p.FLOPs > 0
	if p = p.withDefaults(); len(wrong) == 0 && !given {
		if w := implausible("6·params·tokens", p.FLOPs); w != "" {
			wrong = append(wrong, w)
		}
	}
	if len(wrong) == 0 && p.Unique > p.Tokens {
		wrong = append(wrong, fmt.Sprintf("unique_tokens, %g, is above tokens, %g", p.Unique, p.Tokens))
	}
	return p, wrong
}

// implausible returns why no model has this number; "" if one may have it.
func implausible(column string, v float64) string {
	least := 1.0 // a parameter, a token or an operation
	if column == lossColumn {
		least = 1 / beyond
	}
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprintf("%s is %v", column, v)
	case v < least || v > beyond:
		return fmt.Sprintf("%s is %v, must be from %g to %g", column, v, least, float64(beyond))
	}
	return ""
}

// tooFew describes what the points lack for a fit.
func tooFew(points []Point) (list []string) {
	if n := len(points); n < leastPoints {
		are := "are"
		if n == 1 {
			are = "is"
		}
		list = append(list, fmt.Sprintf("%s %s too few: a fit of five numbers needs at least %d",
			units.Count(n, "point"), are, leastPoints))
	}
	params, tokens, losses := map[float64]bool{}, map[float64]bool{}, map[float64]bool{}
	for _, p := range points {
		params[p.Params], tokens[p.worth()], losses[p.Loss] = true, true, true
	}
	if len(points) > 1 && len(losses) == 1 {
		list = append(list, "all losses are equal")
	}
	read := "tokens"
	if slices.ContainsFunc(points, func(p Point) bool { return p.Unique > 0 && p.Unique < p.Tokens }) {
		read = "tokens, of which repeated ones count less,"
	}
	for _, c := range []struct {
		n    int
		what string
	}{{len(params), "params"}, {len(tokens), read}} {
		if c.n < leastValues {
			list = append(list, fmt.Sprintf("the column %s has %s: its exponent needs at least %d", c.what,
				units.Count(c.n, "different value"), leastValues))
		}
	}
	return list
}
