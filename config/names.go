package config

import (
	"fmt"
	"slices"
	"strings"

	"anneal/internal/nearest"
)

// namesText is the text form of a list of names: "none" if there are none.
func namesText(list []string) []byte {
	if len(list) == 0 {
		return []byte("none")
	}
	return []byte(strings.Join(list, ", "))
}

// readNames reads a list of known names, each at most once, or none.
func readNames(text []byte, known []string) (list []string, err error) {
	if all := strings.TrimSpace(string(text)); all == "none" || all == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(string(text), ",") {
		name = strings.TrimSpace(name)
		switch {
		case !slices.Contains(known, name):
			try := strings.Join(known, ", ")
			if near := nearest.To(strings.ToLower(name), known); near != "" {
				try = near + "; there are " + try
			}
			return nil, fmt.Errorf("%q is not known\n  try %s", name, try)
		case slices.Contains(list, name):
			return nil, fmt.Errorf("%s is listed twice", name)
		}
		list = append(list, name)
	}
	return list, nil
}
