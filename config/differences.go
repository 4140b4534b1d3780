package config

import "fmt"

// A Difference is a key with different values in two configurations, as the file writes them.
type Difference struct{ Key, Was, Now string }

// String returns "key: was → now".
func (d Difference) String() string { return fmt.Sprintf("%s: %s → %s", d.Key, d.Was, d.Now) }

// Differences compares all keys of c with those of was. The list is in the order of the file.
func (c *Config) Differences(was *Config) (list []Difference) {
	for _, k := range allKeys {
		if then, now := was.value(k), c.value(k); then != now {
			list = append(list, Difference{k.Name, then, now})
		}
	}
	return list
}
