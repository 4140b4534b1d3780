package mpi

import (
	"fmt"
	"slices"
	"time"

	"anneal/comm"
	"anneal/tensor"
)

// Speed is how fast ranks exchange data.
type Speed struct {
	Latency   time.Duration `json:"latency_ns"`       // median time of a short message from every rank to every rank
	Bandwidth float64       `json:"bytes_per_second"` // best rate at which a rank sends while it receives as much
	Size      int           `json:"bytes"`            // bytes that a rank sent to measure it
}

const (
	rounds      = 200
	largeRounds = 10
	largeBytes  = 16 << 20 // from a rank to all others
)

// Measure measures a group of several ranks. All ranks call it.
func Measure(c comm.Comm) (Speed, error) {
	times := make([]time.Duration, rounds)
	for i := range times {
		start := time.Now()
		if _, err := c.Share(make([]byte, 8)); err != nil {
			return Speed{}, err
		}
		times[i] = time.Since(start)
	}
	arena, err := tensor.NewArena("what ranks send to each other", 4*largeBytes)
	if err != nil {
		return Speed{}, fmt.Errorf("no memory to measure with: %w", err)
	}
	defer arena.Close()
	out, room := make([][]tensor.Tensor, c.Size()), make([][]tensor.Tensor, c.Size())
	each := largeBytes / (c.Size() - 1) &^ 3
	for r := range c.Size() {
		if r != c.Rank() {
			out[r] = []tensor.Tensor{arena.New(tensor.F32, each/4)}
			for i, raw := 0, out[r][0].Raw(); i < len(raw); i++ {
				raw[i] = byte(i) // pages that nobody has written are one page of zeros
			}
			room[r] = []tensor.Tensor{arena.New(tensor.F32, each/4)}
		}
	}
	x := c.NewExchange("a large transfer", out, room)
	best := time.Hour
	for range largeRounds {
		start := time.Now()
		x.Start(c.Size())
		if err := x.Wait(); err != nil {
			return Speed{}, err
		}
		x.Release()
		if err := x.Sent(); err != nil {
			return Speed{}, err
		}
		best = min(best, time.Since(start))
	}
	size := each * (c.Size() - 1)
	return Speed{Latency: median(times), Bandwidth: float64(size) / best.Seconds(), Size: size}, nil
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
