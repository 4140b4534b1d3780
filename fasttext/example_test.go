package fasttext_test

import (
	"context"
	"fmt"
	"strings"

	"anneal/fasttext"
)

// A classifier is trained on lines with labels, and tells texts apart that it has not seen.
func Example() {
	lines := strings.Repeat("__label__go func main return err if nil\n__label__prose the cat sat on the old mat\n", 50)
	o := fasttext.DefaultTrainOptions()
	o.Dim, o.Threads = 8, 1
	m, err := fasttext.Train(context.Background(), strings.NewReader(lines), int64(len(lines)), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := m.NewPredictor() // one for each goroutine
	for _, text := range []string{"if err return", "the old cat"} {
		fmt.Println(text+":", p.Predict([]byte(text), 1, 0.5)[0].Label)
	}
	// Output:
	// if err return: go
	// the old cat: prose
}
