package curate

import (
	"bytes"
	"net/netip"
)

// Identifiers replaces numbers that belong to somebody, in addition to the addresses of PII: telephone numbers, bank
// accounts, payment cards, public IPv6 addresses, and keys of two services. As in PII, the hash of the original chooses
// the replacement. Replacements are numbers that their standard or owner reserves for examples; they are not replaced
// themselves, so that a second pass changes nothing. It drops nothing.
//
//	phones  +, then 8 to 15 digits (E.164) in groups with single spaces, dots or hyphens between, or in brackets;
//	        numbers without + are too often something else
//	ibans   ISO 13616: two letters, two check digits, 11 to 30 letters and digits, in fours or in one,
//	        with remainder 1 modulo 97
//	cards   13 to 19 digits in groups that begin with 3 to 6 and end in their check digit (Luhn); one long number
//	        in ten passes for a card, so not for text of tables and logs
//	ipv6    global unicast addresses, 2000::/3, except those reserved for documentation
//	keys    AWS access keys (AKIA…) and GitHub tokens (ghp_…)
func Identifiers() *Filter {
	var out []byte
	return &Filter{
		Name: "identifiers",
		Bounds: []Bound{unbounded("phones"), unbounded("ibans"), unbounded("cards"), unbounded("ipv6"),
			unbounded("keys")},
		measure: func(d *Doc, values []float64) {
			out = appendWithoutIdentifiers(out[:0], d.Text, values)
			if len(out) > 0 {
				d.SetText(bytes.Clone(out))
			}
		},
	}
}

// identifier is one kind of number: end returns where a number that begins at i ends, or 0.
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

// appendWithoutIdentifiers appends text with its identifiers replaced and counts each kind. Where there are none it
// appends nothing.
func appendWithoutIdentifiers(out, text []byte, counts []float64) []byte {
	done := 0
	for i := 0; i < len(text); i++ {
		if !mayBegin[text[i]] || i > done && wordByte(text[i-1]) {
			continue
		}
		for k, kind := range identifiers {
			end := kind.end(text, i)
			if end == 0 {
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

// wordByte says whether a number cannot begin behind c, nor end before it.
func wordByte(c byte) bool { return alnum(c) || c == '_' || c >= 0x80 }

// isExample compares letters and digits alone.
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

// grouped reads the characters that take accepts, with at most one separator between two, and returns them and their
// end. It returns none if there are more than most.
func grouped(text []byte, i, most int, separators string, take func(c byte) bool) (chars []byte, end int) {
	chars = make([]byte, 0, 40)
	end = i
	for j := i; j < len(text); j++ {
		switch c := text[j]; {
		case take(c):
			if len(chars) == most {
				return nil, 0
			}
			chars = append(chars, c)
			end = j + 1
		case bytes.IndexByte([]byte(separators), c) < 0 || end < j:
			return chars, end
		}
	}
	return chars, end
}

func decimal(c byte) bool { return '0' <= c && c <= '9' }

func phone(text []byte, i int) int {
	if text[i] != '+' || i+1 == len(text) || text[i+1] < '1' || text[i+1] > '9' {
		return 0
	}
	digits, end := 0, 0
	for j, last := i+1, byte(0); j < len(text); j++ {
		switch c := text[j]; {
		case decimal(c):
			digits++
			end = j + 1
		case c == '(' && (last == ' ' || decimal(last)), c == ')' && decimal(last):
		case (c == ' ' || c == '.' || c == '-') && (decimal(last) || last == ')'):
		default:
			j = len(text)
			continue
		}
		last = text[j]
		if digits > 15 {
			return 0
		}
	}
	if digits < 8 || end < len(text) && wordByte(text[end]) {
		return 0
	}
	return end
}

func iban(text []byte, i int) int {
	upper := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	if i+15 > len(text) || !upper(text[i]) || !upper(text[i+1]) || !decimal(text[i+2]) || !decimal(text[i+3]) {
		return 0
	}
	chars, end := grouped(text, i, 34, " ", func(c byte) bool { return upper(c) || decimal(c) })
	if len(chars) < 15 || end < len(text) && wordByte(text[end]) {
		return 0
	}
	rest := 0
	for _, c := range append(chars[4:len(chars):len(chars)], chars[:4]...) {
		if decimal(c) {
			rest = (10*rest + int(c-'0')) % 97
		} else {
			rest = (100*rest + int(c-'A') + 10) % 97
		}
	}
	if rest != 1 {
		return 0
	}
	return end
}

func card(text []byte, i int) int {
	if text[i] < '3' || text[i] > '6' || i > 0 && (text[i-1] == '.' || text[i-1] == '-' || text[i-1] == '+') {
		return 0
	}
	chars, end := grouped(text, i, 19, " -", decimal)
	if len(chars) < 13 || end < len(text) &&
		(wordByte(text[end]) || text[end] == '.' && end+1 < len(text) && decimal(text[end+1])) {
		return 0
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
	if sum%10 != 0 || same {
		return 0
	}
	return end
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
