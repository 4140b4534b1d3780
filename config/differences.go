package config

import (
	"cmp"
	"fmt"
)

// A Difference is a key with different values in two configurations, as the file writes them.
type Difference struct{ Key, Was, Now string }

// String returns "key: was → now"; an empty text is written "".
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s → %s", d.Key, cmp.Or(d.Was, `""`), cmp.Or(d.Now, `""`))
}

// Differences compares all keys of c with those of was. The list is in the order of the file. Secret values are hidden
// as by Shown.
func (c *Config) Differences(was *Config) (list []Difference) {
	wasShown, shown := was.Shown(), c.Shown()
	for _, k := range allKeys {
		if was.value(k) != c.value(k) {
			list = append(list, Difference{k.Name, wasShown.value(k), shown.value(k)})
		}
	}
	return list
}
