package parquet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
)

// The meanings of values in LogicalType and ConvertedType.
const (
	logicalString    = 1
	logicalMap       = 2
	logicalList      = 3
	logicalEnum      = 4
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTime      = 7
	logicalTimestamp = 8
	logicalInteger   = 10
	logicalNull      = 11
	logicalJSON      = 12
	logicalUUID      = 14
	logicalFloat16   = 15

	convertedUTF8            = 0
	convertedMap             = 1
	convertedMapKeyValue     = 2
	convertedList            = 3
	convertedEnum            = 4
	convertedDecimal         = 5
	convertedDate            = 6
	convertedTimeMillis      = 7
	convertedTimeMicros      = 8
	convertedTimestampMillis = 9
	convertedTimestampMicros = 10
	convertedUint8           = 11
	convertedUint64          = 14
	convertedJSON            = 19
)

// form is the format in which a value is written as JSON.
type form struct {
	kind  formKind
	scale int   // digits of a decimal after its point
	whole bool  // a decimal is stored as INT32 or INT64
	unit  int64 // units of a time per second
	utc   bool
}

type formKind int

const (
	formString    formKind = iota
	formBool               // true
	formInt                // -7
	formUint               // 7
	formFloat              // 0.5; not a number and infinities are null
	formDecimal            // -0.05, with all its digits
	formDate               // "2024-02-29"
	formTime               // "23:59:59.5"
	formTimestamp          // "2024-02-29T23:59:59.5Z", without Z if it is not an instant
	formInt96              // the same, written by Impala and old Spark
	formUUID               // "00112233-4455-6677-8899-aabbccddeeff"
)

// maxDecimal is the limit on the bytes of a decimal's whole number, and on the digits after its point.
const maxDecimal = 32

// perSecond holds the number of units per second.
var perSecond = map[int64]int64{1: 1e3, 2: 1e6, 3: 1e9}

// form returns how the values of a column are written and how they are stored, or the reason why they cannot be
// written.
func (e *element) form() (form, leaf, string) {
	e.modernize()
	numbers := map[int64]leaf{typeInt32: {fixed: 4}, typeInt64: {fixed: 8}}
	number, whole := numbers[e.physical]
	switch {
	case e.logical == logicalDecimal:
		f := form{kind: formDecimal, scale: int(e.scale)}
		switch {
		case e.scale < 0 || e.scale > 2*maxDecimal:
		case whole:
			f.whole = true
			return f, number, ""
		case e.physical == typeByteArray:
			return f, leaf{}, ""
		case e.physical == typeFixedArray && e.length > 0 && e.length <= maxDecimal:
			return f, leaf{fixed: int(e.length)}, ""
		}
		return form{}, leaf{}, "a decimal in an unsupported form"
	case e.logical == logicalDate && e.physical == typeInt32:
		return form{kind: formDate}, number, ""
	case e.logical == logicalTime && whole && perSecond[e.unit] > 0:
		return form{kind: formTime, unit: perSecond[e.unit]}, number, ""
	case e.logical == logicalTimestamp && e.physical == typeInt64 && perSecond[e.unit] > 0:
		return form{kind: formTimestamp, unit: perSecond[e.unit], utc: e.utc}, number, ""
	case e.logical == logicalUUID && e.physical == typeFixedArray && e.length == 16:
		return form{kind: formUUID}, leaf{fixed: 16}, ""
	case e.logical == logicalFloat16 && e.physical == typeFixedArray && e.length == 2:
		return form{kind: formFloat}, leaf{fixed: 2}, ""
	case whole && e.unsigned:
		return form{kind: formUint}, number, ""
	case whole:
		return form{kind: formInt}, number, ""
	case e.physical == typeBoolean:
		return form{kind: formBool}, leaf{bits: true}, ""
	case e.physical == typeFloat:
		return form{kind: formFloat}, leaf{fixed: 4}, ""
	case e.physical == typeDouble64:
		return form{kind: formFloat}, leaf{fixed: 8}, ""
	case e.physical == typeInt96:
		return form{kind: formInt96}, leaf{fixed: 12}, ""
	case e.physical == typeByteArray && (e.logical == logicalString || e.logical == logicalEnum ||
		e.logical == logicalJSON || e.logical == logicalNull):
		return form{kind: formString}, leaf{}, ""
	}
	return form{}, leaf{}, "binary, which JSON cannot hold"
}

// modernize translates the ConvertedType of an older file to a LogicalType.
func (e *element) modernize() {
	if e.logical != 0 {
		return
	}
	switch c := e.converted; {
	case c == convertedUTF8:
		e.logical = logicalString
	case c == convertedEnum:
		e.logical = logicalEnum
	case c == convertedJSON:
		e.logical = logicalJSON
	case c == convertedDecimal:
		e.logical = logicalDecimal
	case c == convertedDate:
		e.logical = logicalDate
	case c == convertedTimeMillis || c == convertedTimeMicros:
		e.logical, e.unit = logicalTime, c-convertedTimeMillis+1
	case c == convertedTimestampMillis || c == convertedTimestampMicros:
		e.logical, e.unit, e.utc = logicalTimestamp, c-convertedTimestampMillis+1, true
	case c >= convertedUint8 && c <= convertedUint64:
		e.logical, e.unsigned = logicalInteger, true
	}
}

// append appends a value as JSON; quote appends a string.
func (f *form) append(b, v []byte, quote func(b, s []byte) []byte) ([]byte, error) {
	switch f.kind {
	case formString:
		return quote(b, v), nil
	case formBool:
		return strconv.AppendBool(b, v[0] == 1), nil
	case formInt:
		return strconv.AppendInt(b, signed(v), 10), nil
	case formUint:
		if len(v) == 4 {
			return strconv.AppendUint(b, uint64(binary.LittleEndian.Uint32(v)), 10), nil
		}
		return strconv.AppendUint(b, binary.LittleEndian.Uint64(v), 10), nil
	case formFloat:
		return appendFloat(b, v), nil
	case formDecimal:
		return f.appendDecimal(b, v)
	case formDate:
		return append(time.Unix(signed(v)*86400, 0).UTC().AppendFormat(append(b, '"'), "2006-01-02"), '"'), nil
	case formTime:
		t := f.instant(signed(v))
		return append(t.AppendFormat(append(b, '"'), "15:04:05.999999999"), '"'), nil
	case formTimestamp:
		return appendTimestamp(b, f.instant(signed(v)), f.utc), nil
	case formInt96:
		nanos, day := int64(binary.LittleEndian.Uint64(v)), int64(binary.LittleEndian.Uint32(v[8:]))
		return appendTimestamp(b, time.Unix((day-julianEpoch)*86400, nanos).UTC(), false), nil
	}
	b = append(b, '"')
	for i, n := range []int{4, 2, 2, 2, 6} {
		if i > 0 {
			b = append(b, '-')
		}
		b, v = hex.AppendEncode(b, v[:n]), v[n:]
	}
	return append(b, '"'), nil
}

// julianEpoch is the Julian day of 1970-01-01.
const julianEpoch = 2440588

// instant returns the time v units after the beginning of 1970.
func (f *form) instant(v int64) time.Time {
	s, rest := v/f.unit, v%f.unit
	return time.Unix(s, rest*(1e9/f.unit)).UTC()
}

func appendTimestamp(b []byte, t time.Time, utc bool) []byte {
	b = t.AppendFormat(append(b, '"'), "2006-01-02T15:04:05.999999999")
	if utc {
		b = append(b, 'Z')
	}
	return append(b, '"')
}

func signed(v []byte) int64 {
	if len(v) == 4 {
		return int64(int32(binary.LittleEndian.Uint32(v)))
	}
	return int64(binary.LittleEndian.Uint64(v))
}

// appendFloat appends a number of two, four or eight bytes.
func appendFloat(b, v []byte) []byte {
	x, size := 0.0, 32
	switch len(v) {
	case 2:
		x = half(binary.LittleEndian.Uint16(v))
	case 4:
		x = float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))
	default:
		x, size = math.Float64frombits(binary.LittleEndian.Uint64(v)), 64
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, x, 'g', -1, size)
}

// half is a number of IEEE 754 binary16.
func half(v uint16) float64 {
	exponent, fraction := int(v>>10&31), float64(v&1023)/1024
	x := math.Ldexp(1+fraction, exponent-15)
	switch {
	case exponent == 0:
		x = math.Ldexp(fraction, -14)
	case exponent == 31:
		return math.NaN()
	}
	if v>>15 == 1 {
		x = -x
	}
	return x
}

// appendDecimal appends a whole number over 10^scale, which is INT32 or INT64, or big-endian in two's complement.
func (f *form) appendDecimal(b, v []byte) ([]byte, error) {
	if len(v) == 0 || len(v) > maxDecimal {
		return b, fmt.Errorf("a decimal of %d bytes", len(v))
	}
	x := new(big.Int)
	if f.whole {
		x.SetInt64(signed(v))
	} else if x.SetBytes(v); v[0]&0x80 != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
	}
	if x.Sign() < 0 {
		b = append(b, '-')
	}
	digits := x.Abs(x).String()
	for len(digits) <= f.scale {
		digits = "0" + digits
	}
	b = append(b, digits[:len(digits)-f.scale]...)
	if f.scale > 0 {
		b = append(append(b, '.'), digits[len(digits)-f.scale:]...)
	}
	return b, nil
}
