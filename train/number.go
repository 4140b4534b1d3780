package train

import "anneal/internal/nanjson"

// Number is a float64 that is null in JSON if it is not finite; null is read as NaN.
type Number = nanjson.Number
