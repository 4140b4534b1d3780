package cuda

import "anneal/device"

// Absent describes a card that cannot be opened here, for plans.
type Absent struct{ device.Unknown }

// Name returns "cuda".
func (Absent) Name() string { return "cuda" }

// Apart implements device.Properties.
func (Absent) Apart() bool { return true }

// LogitBytes implements device.Properties. A card needs chunks of thousands of rows of logits: for each chunk it
// converts the head and adds to its gradient, 20 bytes per element, which takes as long as the products of 650 rows
// on an H100.
func (Absent) LogitBytes() int { return 512 << 20 }
