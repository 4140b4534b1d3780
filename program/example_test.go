package program_test

import (
	"fmt"

	"anneal/program"
)

// A step of two stages and four micro-batches: its instructions are checked, and its course is simulated.
func Example() {
	schedule, err := program.Parse("1f1b")
	if err != nil {
		fmt.Println(err)
		return
	}
	lists, err := schedule.Make(2, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := program.Check(lists, 1); err != nil {
		fmt.Println(err)
		return
	}
	course, err := program.Simulate(lists, program.Even(2, 1, 1, 1, 1)) // forward and both halves of backward take 1
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("instructions of stage 0:", len(lists[0]))
	fmt.Printf("total %v, idle %.0f %%, micro-batches kept %v\n", course.Total, 100*course.IdleShare(), course.Peak)
	// Output:
	// instructions of stage 0: 16
	// total 15, idle 20 %, micro-batches kept [2 1]
}
