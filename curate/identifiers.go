package curate

import (
	"bytes"
	"iter"
	"net/netip"
)

// Identifiers replaces personal numbers, in addition to the addresses of PII: telephone numbers, bank accounts,
// payment cards, public IPv6 addresses, and keys of two services. As in PII, the hash of the original chooses the
// replacement. Replacements are numbers that their standard or owner reserves for examples. They are not replaced
// themselves, so a second pass changes nothing. It drops nothing.
//
//	phones  +, then 8 to 15 digits (E.164), 11 in North America (+1), in groups with single spaces, dots or hyphens
//	        between, or in brackets; numbers without + are too often something else
//	ibans   ISO 13616: two letters, two check digits, 11 to 30 letters and digits, in fours or in one,
//	        with remainder 1 modulo 97
//	cards   13 to 19 digits in groups that begin with 3 to 6 and end in their check digit (Luhn); one long number
//	        in ten passes for a card, so not for text of tables and logs
//	ipv6    global unicast addresses, 2000::/3, except those reserved for documentation
//	keys    AWS access keys (AKIA…) and GitHub tokens (ghp_…)
//
// A blank and more digits or capitals may follow a number, as in "4012 8888 8888 1881 12/25": only the last group of an
// IBAN or a card may have fewer than four characters, and a telephone number ends with its first group of six digits or
// more that completes it.
func Identifiers() *Filter {
	var out []byte
	return &Filter{
		Name: "identifiers",
		Bounds: []Bound{unbounded("phones"), unbounded("ibans"), unbounded("cards"), unbounded("ipv6"),
			unbounded("keys")},
		measure: func(d *Doc, values []float64) {
			out = appendWithoutIdentifiers(out, d.Text, values)
			if len(out) > 0 {
				d.SetText(bytes.Clone(out))
			}
			out = reusable(out)
		},
	}
}

// identifier is one kind of number. end returns the end of a number that begins at i, or 0.
type identifier struct {
	end  func(text []byte, i int) int
	from []string // replacements
}

// No replacement can merge with the characters before it into a longer number.
var identifiers = [...]identifier{
	{phone, []string{"+1 202 555 0123", "+1 202 555 0147"}},
	{iban, []string{"GB82 WEST 1234 5698 7654 32", "NO93 8601 1117 947"}},
	{card, []string{"4111 1111 1111 1111", "5555 5555 5555 4444"}},
	{ipv6, []string{"2001:db8::1", "2001:db8::77"}},
	{accessKey, []string{"AKIAIOSFODNN7EXAMPLE"}},
}

// mayBegin is true for the bytes with which an identifier may begin.
var mayBegin = func() (t [256]bool) {
	for c := range t {
		t[c] = c == '+' || '2' <= c && c <= '6' || 'A' <= c && c <= 'Z' || c == 'g'
	}
	return t
}()

// appendWithoutIdentifiers appends text with its identifiers replaced and counts each kind. If there are none it
// appends nothing.
func appendWithoutIdentifiers(out, text []byte, counts []float64) []byte {
	done := 0
	for i := 0; i < len(text); i++ {
		if !mayBegin[text[i]] || i > done && wordByte(text[i-1]) {
			continue
		}
		for k, kind := range identifiers {
			end := kind.end(text, i)
			if end == 0 || holdsExample(text, i+1, end) {
				continue
			}
			if found := text[i:end]; !isExample(found, kind.from) {
				out = append(append(out, text[done:i]...), pick(found, kind.from)...)
				done = end
				counts[k]++
			}
			i = end - 1
			break
		}
	}
	if done > 0 {
		out = append(out, text[done:]...)
	}
	return out
}

// wordByte reports whether c prevents a number from beginning after it and from ending before it.
func wordByte(c byte) bool { return alnum(c) || c == '_' || c >= 0x80 }

// isExample compares only letters and digits.
func isExample(found []byte, examples []string) bool {
	for _, e := range examples {
		if bytes.Equal(compact(nil, found), compact(nil, []byte(e))) {
			return true
		}
	}
	return false
}

func compact(dst, s []byte) []byte {
	for _, c := range s {
		if alnum(c) || c == ':' {
			dst = append(dst, c)
		}
	}
	return dst
}

// holdsExample reports whether a replacement begins in text[from:end]. Then the text before it became part of a number
// only by an earlier pass.
func holdsExample(text []byte, from, end int) bool {
	for _, kind := range identifiers {
		for _, e := range kind.from {
			if i := bytes.Index(text[from:min(end+len(e)-1, len(text))], []byte(e)); i >= 0 {
				return true
			}
		}
	}
	return false
}

// groups yields candidates for a number that begins at i, with their ends. A candidate consists of characters that
// take accepts, up to a limit, in groups with one separator between two groups; every end of a group ends a candidate.
// A group of fewer than four characters is the last.
func groups(text []byte, i, most int, separators string, take func(c byte) bool) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		chars, group := make([]byte, 0, 40), 0
		for ; i < len(text) && take(text[i]) && len(chars) < most; i++ {
			chars = append(chars, text[i])
			group++
			if i+1 < len(text) && take(text[i+1]) {
				continue
			}
			if ends(text, i+1) && !yield(chars, i+1) || group < 4 {
				return
			}
			if group = 0; i+1 < len(text) && bytes.IndexByte([]byte(separators), text[i+1]) >= 0 {
				i++
			}
		}
	}
}

// ends reports whether a number can end before text[i].
func ends(text []byte, i int) bool { return i == len(text) || !wordByte(text[i]) }

// joined reports whether a dot or a hyphen joins the characters before text[i] to digits after it.
func joined(text []byte, i int) bool {
	return i+1 < len(text) && (text[i] == '.' || text[i] == '-') && decimal(text[i+1])
}

func decimal(c byte) bool { return '0' <= c && c <= '9' }

func phone(text []byte, i int) int {
	if text[i] != '+' || i+1 == len(text) || text[i+1] < '1' || text[i+1] > '9' {
		return 0
	}
	most := 15
	if text[i+1] == '1' {
		most = 11
	}
	digits, group, end := 0, 0, 0
	for j, last := i+1, byte(0); j < len(text); j++ {
		switch c := text[j]; {
		case decimal(c):
			if digits++; digits > most {
				return end
			}
			if group++; digits >= 8 && ends(text, j+1) && !joined(text, j+1) {
				end = j + 1
			}
		case c == '(' && (last == ' ' || decimal(last)), c == ')' && decimal(last):
			group = 0
		case (c == ' ' || c == '.' || c == '-') && (decimal(last) || last == ')'):
			if end == j && group >= 6 {
				return end // text after such a group is seldom a part of the number
			}
			group = 0
		default:
			return end
		}
		last = text[j]
	}
	return end
}

func iban(text []byte, i int) (end int) {
	upper := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	if i+15 > len(text) || !upper(text[i]) || !upper(text[i+1]) || !decimal(text[i+2]) || !decimal(text[i+3]) {
		return 0
	}
	for chars, at := range groups(text, i, 34, " ", func(c byte) bool { return upper(c) || decimal(c) }) {
		rest := 0
		for k := range chars {
			if c := chars[(k+4)%len(chars)]; decimal(c) {
				rest = (10*rest + int(c-'0')) % 97
			} else {
				rest = (100*rest + int(c-'A') + 10) % 97
			}
		}
		if len(chars) >= 15 && rest == 1 {
			end = at
		}
	}
	return end
}

// card takes the shortest number that passes, because nine out of ten longer ones are a card followed by something
// else.
func card(text []byte, i int) int {
	if text[i] < '3' || text[i] > '6' || i > 0 && (text[i-1] == '.' || text[i-1] == '-' || text[i-1] == '+') {
		return 0
	}
	for chars, end := range groups(text, i, 19, " -", decimal) {
		if len(chars) < 13 || joined(text, end) {
			continue
		}
		sum, same := 0, true
		for k, c := range chars {
			d := int(c - '0')
			if (len(chars)-k)%2 == 0 {
				d = 2*d - 9*(d/5)
			}
			sum += d
			same = same && c == chars[0]
		}
		if sum%10 == 0 && !same {
			return end
		}
	}
	return 0
}

func ipv6(text []byte, i int) int {
	if text[i] != '2' && text[i] != '3' || i > 0 && text[i-1] == ':' {
		return 0
	}
	end, colons := i, 0
	for end < len(text) && (alnum(text[end]) || text[end] == ':') {
		if text[end] == ':' {
			colons++
		}
		end++
	}
	if text[end-1] == ':' && (end < i+2 || text[end-2] != ':') { // that of a sentence
		end--
		colons--
	}
	if colons < 2 || end-i > 39 || end < len(text) && wordByte(text[end]) {
		return 0
	}
	ip, err := netip.ParseAddr(string(text[i:end]))
	if err != nil || !netip.MustParsePrefix("2000::/3").Contains(ip) ||
		netip.MustParsePrefix("2001:db8::/32").Contains(ip) {
		return 0
	}
	return end
}

func accessKey(text []byte, i int) int {
	rest := text[i:]
	n, letters := 0, func(c byte) bool { return alnum(c) }
	switch {
	case bytes.HasPrefix(rest, []byte("AKIA")):
		n, letters = 20, func(c byte) bool { return 'A' <= c && c <= 'Z' || decimal(c) }
	case len(rest) > 4 && rest[0] == 'g' && rest[1] == 'h' && bytes.IndexByte([]byte("pousr"), rest[2]) >= 0 &&
		rest[3] == '_':
		n, i = 40, i+4
	default:
		return 0
	}
	start := len(text) - len(rest)
	for i < len(text) && i < start+n && letters(text[i]) {
		i++
	}
	if i < start+n || i < len(text) && wordByte(text[i]) {
		return 0
	}
	return i
}
