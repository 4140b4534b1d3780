package attention

import "fmt"

// maxEntries limits the blocks and ranges of keys in all layouts of a model. They take about 50 bytes each; a
// sensible pattern has about one per 64 tokens, head and layer.
const maxEntries = 1 << 23

// CheckLayers returns an *Error if the patterns, which repeat over the layers of a model, cannot be used for rows of
// length tokens and that number of query heads. It does not compile them.
func CheckLayers(list Patterns, length, heads, layers int) error {
	total := 0.0
	counted := map[string]bool{}
	for i, p := range list[:min(len(list), layers)] {
		for _, p := range stages(p.Resolve(length, 0)) {
			if err := p.Check(length, heads); err != nil {
				return err
			}
			n := p.entries(length, heads)
			if _, own := p.(BigBird); own { // random blocks differ between layers
				n *= float64((layers - i + len(list) - 1) / len(list))
			} else if counted[p.String()] {
				continue
			}
			counted[p.String()] = true
			if total += n; total > maxEntries {
				return &Error{
					fmt.Sprintf("%s has too many separate blocks of keys for rows of %d tokens, "+
						"%d heads and %d layers: about %.0f including earlier layers, the limit is %d",
						p, length, heads, layers, total, maxEntries),
					"larger blocks, strides or segments, fewer random blocks, or shorter rows",
				}
			}
		}
	}
	return nil
}

// tiles returns the number of query blocks for consecutive tokens.
func tiles(tokens int) float64 { return float64(tokens/tile + 1) }
