package interop

import (
	"fmt"
	"strings"

	"anneal/config"
	"anneal/internal/floats"
	"anneal/model"
	"anneal/safetensors"
)

// CheckRange returns an error if a weight is too large for the format that it is to be stored in, where it would be
// infinite. It reads a few weights at a time.
func CheckRange(views []model.View, dtype safetensors.DType) error {
	stored := map[safetensors.DType]func(x float32) float32{
		safetensors.BF16: func(x float32) float32 { return floats.FromBF16(floats.ToBF16(x)) },
		safetensors.F16:  func(x float32) float32 { return floats.FromF16(floats.ToF16(x)) },
	}[dtype]
	if stored == nil {
		return nil
	}
	var some [4096]float32
	for _, v := range views {
		values := v.Values()
		for from := 0; from < v.Tensor.Len(); from += len(some) {
			list := some[:min(len(some), v.Tensor.Len()-from)]
			values(list, from)
			if x := largest(list); !finite(stored(x)) && finite(x) {
				return tooLarge(x, v.Name, strings.ToLower(string(dtype)))
			}
		}
	}
	return nil
}

// largest returns the value of a list with the largest magnitude.
func largest(list []float32) (most float32) {
	for _, x := range list {
		if max(x, -x) > max(most, -most) {
			most = x
		}
	}
	return most
}

func finite(x float32) bool { return x-x == 0 }

// tooLarge is the error that a weight does not fit in a format of 16 or 8 bits.
func tooLarge(x float32, name, format string) error {
	p := config.Problem{Message: fmt.Sprintf("%v of %s does not fit in %s", x, name, format), Try: "--dtype bf16"}
	if format == "bf16" {
		p.Try = "--dtype f32"
	}
	return p
}
