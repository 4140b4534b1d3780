package run

import (
	"bytes"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
)

// redactor takes out of texts what is nobody else's business.
type redactor struct {
	names []name // the longest first
}

type name struct{ was, now []byte }

var (
	webhookLine = regexp.MustCompile(`(?m)^(\s*webhook:\s*)\S.*?(\s+#.*)?$`)
	anyURL      = regexp.MustCompile(
		`\b([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^\s/@"']+@)?([^\s/?#"'<>]+)([^\s?#"'<>]*)([?#][^\s"'<>]*)?`)
	// A directory and what stands in it: only the last name remains.
	unixPath    = regexp.MustCompile(`(^|[^\w./:-])((?:~|\.\.?)?/(?:[^\s/:"'=,;()]+/)+)([^\s/:"'=,;()]*)`)
	windowsPath = regexp.MustCompile(`\b[A-Za-z]:\\(?:[^\s\\:"'=,;()]+\\)*([^\s\\:"'=,;()]*)`)
)

func newRedactor(d runDir) redactor {
	var r redactor
	add := func(was, now string) {
		if len(was) > 2 { // a user called "a" is in every word
			r.names = append(r.names, name{[]byte(was), []byte(now)})
		}
	}
	if whole, err := filepath.Abs(string(d)); err == nil {
		add(whole, "RUN")
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		add(home, "~")
	}
	add(hostname(), "HOST")
	if u, err := user.Current(); err == nil && u.Username != "root" {
		add(u.Username, "USER")
	}
	return r
}

// redact returns the text without directories, names of user and host, and secrets of URLs. Names of data sets, the
// last part of their paths, remain.
func (r redactor) redact(text []byte) []byte {
	text = webhookLine.ReplaceAll(text, []byte("${1}REDACTED${2}"))
	text = anyURL.ReplaceAllFunc(text, func(u []byte) []byte {
		m := anyURL.FindSubmatch(u)
		out := append(bytes.Clone(m[1]), m[2]...)
		if len(m[3]) > 1 {
			out = append(out, "/REDACTED"...)
		}
		return out
	})
	for _, n := range r.names {
		text = bytes.ReplaceAll(text, n.was, n.now)
	}
	text = unixPath.ReplaceAll(text, []byte("${1}…/${3}"))
	return windowsPath.ReplaceAll(text, []byte("…/${1}"))
}
