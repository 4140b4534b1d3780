package tasks

import (
	"fmt"
	"slices"

	"anneal/tasks/jinja"
)

// shotSeed is the harness's --seed of examples.
const shotSeed = 1234

// examples draws the examples before each item in turn: with the same random numbers as the harness, or the first ones
// of their split.
type examples struct {
	task   *Task
	pool   []item
	random *python
	// examples come from the evaluated split: an item must not be an example of itself
	same bool
}

func (t *Task) newExamples() (*examples, error) {
	x := &examples{task: t, random: newPython(shotSeed), same: t.splits.shots == t.splits.test}
	if t.Shots == 0 {
		return x, nil
	}
	var err error
	x.pool, err = t.items(t.splits.examples())
	if err == nil && t.Shots > x.room() {
		err = &Problem{
			At: t.File, Try: "a smaller num_fewshot, or more data",
			Message: fmt.Sprintf("num_fewshot %d is more than the %d items to draw examples from", t.Shots, x.room()),
		}
	}
	return x, err
}

// room returns how many examples an item can have.
func (x *examples) room() int {
	if x.same {
		return len(x.pool) - 1
	}
	return len(x.pool)
}

func (t *Task) items(split string) ([]item, error) {
	values, err := t.data.items(split)
	list := make([]item, len(values))
	for i, v := range values {
		list[i] = item{i, v}
	}
	return list, err
}

// equal reports whether o has the same values.
func (it item) equal(o item) bool { return jinja.Equal(o.values, it.values) }

// next returns the examples of the next item.
func (x *examples) next(it item) ([]item, error) {
	n := x.task.Shots
	if n == 0 {
		return nil, nil
	}
	var list []item
	switch {
	case x.task.sampler == "first_n" && !x.same:
		return x.pool[:n], nil
	case x.task.sampler == "first_n":
		for _, o := range x.pool {
			if len(list) < n && !it.equal(o) {
				list = append(list, o)
			}
		}
	case x.same:
		for _, i := range x.random.sample(len(x.pool), n+1) {
			list = append(list, x.pool[i])
		}
		list = slices.DeleteFunc(list, it.equal)
		list = list[:min(n, len(list))]
	default:
		for _, i := range x.random.sample(len(x.pool), n) {
			list = append(list, x.pool[i])
		}
	}
	if len(list) < n {
		return nil, &Problem{
			At: x.task.File, Try: "a smaller num_fewshot, or data without repeated items",
			Message: fmt.Sprintf("too few examples for item %d: the same items are there again", it.number),
		}
	}
	return list, nil
}
