package attention

import "fmt"

// maxEntries is the most blocks and ranges of keys that the layouts of a model may have in all. They take some 50 bytes each; a
// pattern of sensible blocks has one for about 64 tokens, head and layer.
const maxEntries = 1 << 23

// CheckLayers returns what is wrong with the patterns of a model's layers, which take the list in turn, for rows of so many tokens
// and a number of query heads: an *Error. It compiles nothing.
func CheckLayers(list []Pattern, length, heads, layers int) error {
	total := 0.0
	counted := map[string]bool{}
	for i, p := range list[:min(len(list), layers)] {
		p = p.Resolve(length, 0)
		if err := p.Check(length, heads); err != nil {
			return err
		}
		n := p.entries(length, heads)
		if _, own := p.(BigBird); own { // its random blocks are the layer's own
			n *= float64((layers - i + len(list) - 1) / len(list))
		} else if counted[p.String()] {
			continue
		}
		counted[p.String()] = true
		if total += n; total > maxEntries {
			return &Error{
				fmt.Sprintf("%s has too many separate blocks of keys for rows of %d tokens, %d heads and %d layers: about %.0f including earlier layers, the limit is %d",
					p, length, heads, layers, total, maxEntries),
				"larger blocks, strides or segments, fewer random blocks, or shorter rows",
			}
		}
	}
	return nil
}

// tiles returns how many blocks of queries neighbouring tokens are cut into.
func tiles(tokens int) float64 { return float64(tokens/tile + 1) }
