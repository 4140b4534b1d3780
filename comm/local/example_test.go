package local_test

import (
	"fmt"
	"sync"

	"anneal/comm/local"
	"anneal/tensor"
)

// Two ranks in one process give each other a tensor, and each adds what it gets in the order of the ranks.
func Example() {
	world := local.New(2, local.Options{})
	sums := make([]float32, 2)
	var ranks sync.WaitGroup
	for me, c := range world {
		ranks.Go(func() {
			mine := []tensor.Tensor{*tensor.Of([]float32{float32(10 + me)})}
			t := c.NewExchange("numbers", [][]tensor.Tensor{mine, mine}, nil)
			t.Start(2)
			if err := t.Wait(); err != nil {
				fmt.Println(err)
				return
			}
			for from := range 2 {
				sums[me] += t.From(from)[0].F32()[0]
			}
			t.Release()
			if err := t.Sent(); err != nil { // from here on the tensor may change
				fmt.Println(err)
			}
		})
	}
	ranks.Wait()
	fmt.Println(sums)
	for _, c := range world {
		c.Close()
	}
	// Output: [21 21]
}
