package config

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"anneal/attention"
	"anneal/internal/nearest"
)

// unknownKey suggests keys for an unknown one: keys of the same name in other sections, what other programs mean by the
// name, the key with the most similar spelling, or keys whose explanation has the words of the name.
func unknownKey(name, at string) Problem {
	p := Problem{Key: name, Message: "unknown key " + name, At: at, Try: "`anneal explain` for the list of keys"}
	leaf := name[strings.LastIndexByte(name, '.')+1:]
	if same := Find(leaf); same != nil {
		p.Try = strings.Join(same, " or ")
		return p
	}
	if try := Elsewhere(leaf); try != "" {
		p.Try = try
		return p
	}
	var names []string
	for _, k := range allKeys {
		if section, _, ok := strings.Cut(k.Name, "."); ok && !strings.Contains(name, ".") {
			names = append(names, section)
		}
		names = append(names, k.Name)
	}
	if near := nearest.To(name, names); near != "" {
		p.Try = near
	} else if near := nearest.To(leaf, leaves()); near != "" {
		p.Try = strings.Join(Find(near), " or ")
	} else if about := keysAbout(leaf); about != nil {
		p.Try = strings.Join(about, " or ")
	}
	return p
}

// leaves returns the last parts of all keys.
func leaves() (list []string) {
	for _, k := range allKeys {
		list = append(list, k.Name[strings.LastIndexByte(k.Name, '.')+1:])
	}
	return list
}

// keysAbout returns up to four keys that have all words of a name in their own, or else in their explanation, the
// shortest first.
func keysAbout(name string) (keys []string) {
	split := func(text string) []string {
		between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
		return strings.FieldsFunc(strings.ToLower(text), between)
	}
	words := split(name)
	if len(words) == 0 || isSection(name) {
		return nil
	}
	byName, byDoc := func(k Key) string { return k.Name }, func(k Key) string { return k.Doc }
	for _, text := range []func(Key) string{byName, byDoc} {
		shorter := func(a, b Key) int { return len(text(a)) - len(text(b)) }
		for _, k := range slices.SortedStableFunc(slices.Values(allKeys), shorter) {
			has := split(text(k))
			if !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(has, w) }) {
				keys = append(keys, k.Name)
			}
		}
		if keys != nil {
			break
		}
	}
	return keys[:min(len(keys), 4)]
}

// problem describes why a text is not a value of the key.
func (k Key) problem(err error, at string) Problem {
	if e := new(attention.Error); errors.As(err, &e) {
		return Problem{Key: k.Name, Message: k.Name + ": " + e.Message, At: at, Try: e.Try}
	}
	return Problem{Key: k.Name, Message: err.Error(), At: at, Try: k.example()}
}

// example suggests a value for the key, if the type of the key does not show the form of its values.
func (k Key) example() string {
	switch {
	case k.try != "":
		return k.try
	case k.amount || k.Type == "true or false":
		return ""
	case k.Rule != "":
		return "removing the key: " + k.Rule
	}
	return k.Name + " = " + k.Default
}
