package curate

import (
	"bytes"
	"net/netip"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// PII replaces e-mail addresses and public IPv4 addresses, as FineWeb does, but the hash of the address chooses the
// replacement, so an address has the same replacement in every document, whatever the order of documents (datatrove
// takes replacements in turn). The replacements are addresses reserved for documentation (RFC 2606, RFC 5737). They
// are not replaced themselves, so a second pass changes nothing.
//
// E-mail addresses follow datatrove's pattern, without address literals; text directly followed by another @ is not an
// address. An IPv4 address is four numbers up to 255 without leading zeros, neither beside further digits nor part of
// a longer chain such as the version 1.2.3.4.5. It drops nothing.
//
//	emails, ips  how many were replaced; no bounds by default
func PII() *Filter {
	var out []byte
	return &Filter{Name: "pii", Bounds: []Bound{unbounded("emails"), unbounded("ips")},
		measure: func(d *Doc, values []float64) {
			emails, ips := 0, 0
			out, emails = appendWithoutEmails(out[:0], d.Text)
			if emails > 0 {
				d.SetText(bytes.Clone(out))
			}
			out, ips = appendWithoutIPs(out[:0], d.Text, d.masks())
			if ips > 0 {
				d.SetText(bytes.Clone(out))
			}
			out = reusable(out)
			values[0], values[1] = float64(emails), float64(ips)
		}}
}

var (
	emailReplacements = [...]string{"email@example.com", "firstname.lastname@example.org"}
	ipReplacements    = [...]string{
		"192.0.2.1", "192.0.2.77", "198.51.100.23", "198.51.100.142", "203.0.113.5", "203.0.113.200",
	}
)

func pick(match []byte, from []string) string { return from[xxh3.Hash(match)%uint64(len(from))] }

// appendWithoutEmails appends text with its e-mail addresses replaced. If there are none it appends nothing.
func appendWithoutEmails(out, text []byte) ([]byte, int) {
	n, done, from := 0, 0, 0 // from: end of the last address
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], '@')
		if i < 0 {
			break
		}
		at += i
		start, end := emailAround(text, from, at)
		if end == 0 {
			continue
		}
		if !reserved(text[at+1 : end]) {
			n++
			out = append(append(out, text[done:start]...), pick(text[start:end], emailReplacements[:])...)
			done = end
		}
		from, at = end, end-1
	}
	if n > 0 {
		out = append(out, text[done:]...)
	}
	return out, n
}

var atom = func() (t [256]bool) {
	for c := range t {
		t[c] = c < utf8.RuneSelf && (alnum(byte(c)) || bytes.IndexByte([]byte("!#$%&'*+/=?^_`{|}~-"), byte(c)) >= 0)
	}
	return t
}()

func alnum(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' }

// emailAround returns the bounds of the address whose @ is at, not before from; end is 0 if there is none.
func emailAround(text []byte, from, at int) (start, end int) {
	s := at
	for s > from && (atom[text[s-1]] || text[s-1] == '.' && s < at && atom[text[s]]) {
		s--
	}
	for s < at && !(atom[text[s]] && boundary(text, s)) {
		s++
	}
	if s == at || text[at-1] == '.' {
		return 0, 0
	}
	labels := 0
	for i := at + 1; i < len(text) && alnum(text[i]); i++ {
		label := i
		for i < len(text) && (alnum(text[i]) || text[i] == '-') {
			i++
		}
		labels++
		end = i
		for end > label && text[end-1] == '-' {
			end--
		}
		if end < i || i == len(text) || text[i] != '.' {
			break
		}
	}
	if labels < 2 || end < len(text) && text[end] == '@' {
		return 0, 0
	}
	return s, end
}

// boundary reports whether exactly one of the character at i and the one before it belongs to a word.
func boundary(text []byte, i int) bool {
	r, _ := utf8.DecodeLastRune(text[:i])
	before := i > 0 && (r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r))
	return before != (alnum(text[i]) || text[i] == '_')
}

func reserved(domain []byte) bool {
	for _, d := range [...]string{"example.com", "example.org", "example.net"} {
		if bytes.EqualFold(domain, []byte(d)) {
			return true
		}
	}
	return false
}

// appendWithoutIPs appends text with its public IPv4 addresses replaced. If there are none it appends nothing.
func appendWithoutIPs(out, text []byte, m *maskSet) ([]byte, int) {
	n, done, next := 0, 0, 0
	isDigit := func(i int) bool { return i >= 0 && i < len(text) && '0' <= text[i] && text[i] <= '9' }
	for at := range m.betweenDigits {
		if at < next || text[at] != '.' {
			continue
		}
		start, end := at, at
		for start > done && isDigit(start-1) {
			start--
		}
		for isDigit(end) || end < len(text) && text[end] == '.' && isDigit(end+1) {
			end++
		}
		ip, err := netip.ParseAddr(string(text[start:min(end, start+16)]))
		if err == nil && ip.Is4() && public(ip) && !(start > 0 && text[start-1] == '.' && isDigit(start-2)) {
			n++
			out = append(append(out, text[done:start]...), pick(text[start:end], ipReplacements[:])...)
			done = end
		}
		next = end
	}
	if n > 0 {
		out = append(out, text[done:]...)
	}
	return out, n
}

// special lists the addresses that the IANA registry of special-purpose IPv4 addresses marks as not globally
// reachable.
var special = func() (list []netip.Prefix) {
	for _, p := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	} {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}()

func public(ip netip.Addr) bool {
	for _, p := range special {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}
