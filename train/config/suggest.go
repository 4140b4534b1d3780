package config

import (
	"fmt"
	"strings"

	"anneal/internal/nearest"
)

// unknownKey names the nearest key: one of the same name in another section, or one a few letters away.
func unknownKey(name, at string) Problem {
	p := Problem{Key: name, Message: fmt.Sprintf("unknown key %s", name), At: at}
	leaf := name[strings.LastIndexByte(name, '.')+1:]
	var names []string
	for _, k := range allKeys {
		if section, _, ok := strings.Cut(k.Name, "."); ok && !strings.Contains(name, ".") {
			names = append(names, section)
		}
		if strings.HasSuffix(k.Name, "."+leaf) || k.Name == leaf {
			p.Try = k.Name
			return p
		}
		names = append(names, k.Name)
	}
	if near := nearest.To(name, names); near != "" {
		p.Try = near
	} else {
		p.Try = "`anneal explain` for the list of keys"
	}
	return p
}

// example is what to try in place of a text that is no value of the key, if its type does not say so already.
func (k Key) example() string {
	switch {
	case k.amount || k.Type == "true or false":
		return ""
	case k.Rule != "":
		return "leaving it out: " + k.Rule
	}
	return k.Name + " = " + k.Default
}
