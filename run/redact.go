package run

import (
	"bytes"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
)

// redactor removes private information from texts.
type redactor struct {
	names []name // the longest first
}

type name struct{ was, now []byte }

var (
	hostField   = regexp.MustCompile(`("host"\s*:\s*)"[^"]*"`) // of any length
	webhookLine = regexp.MustCompile(`(?m)^(\s*webhook:\s*)\S.*?(\s+#.*)?$`)
	anyURL      = regexp.MustCompile(
		`\b([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^\s/?#"']*@)?([^\s/?#"'<>]+)([^\s?#"'<>]*)([?#][^\s"'<>]*)?`)
	// A path with directories: only the last name remains.
	unixPath    = regexp.MustCompile(`(^|[^\w./:-])((?:~|\.\.?)?/(?:[^\s/:"'=,;()]+/)+)([^\s/:"'=,;()]*)`)
	windowsPath = regexp.MustCompile(`\b[A-Za-z]:\\{1,2}(?:[^\s\\:"'=,;()]+\\{1,2})*([^\s\\:"'=,;()]*)`)
)

func newRedactor(d runDir) redactor {
	var r redactor
	if whole, err := filepath.Abs(string(d)); err == nil {
		r.add(whole, "RUN")
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		r.add(home, "~")
	}
	r.add(hostname(), "HOST")
	if u, err := user.Current(); err == nil && u.Username != "root" {
		r.add(u.Username, "USER")
	}
	return r
}

// add replaces a name, also in its JSON form; of a name in a Windows domain, also its last part.
func (r *redactor) add(was, now string) {
	if len(was) <= 2 { // a user called "a" is in every word
		return
	}
	r.names = append(r.names, name{[]byte(was), []byte(now)})
	if escaped := strings.ReplaceAll(was, `\`, `\\`); escaped != was {
		r.names = append(r.names, name{[]byte(escaped), []byte(now)})
	}
	if domain, user, ok := strings.Cut(was, `\`); ok && now == "USER" && domain != "" {
		r.add(user, now)
	}
}

// redact returns the text without directories, names of user and host, and secrets of URLs. Names of data sets, the
// last part of their paths, remain.
func (r redactor) redact(text []byte) []byte {
	text = hostField.ReplaceAll(text, []byte(`${1}"HOST"`))
	text = webhookLine.ReplaceAll(text, []byte("${1}REDACTED${2}"))
	text = anyURL.ReplaceAllFunc(text, func(u []byte) []byte {
		m := anyURL.FindSubmatch(u)
		host := m[2]
		if bytes.ContainsRune(m[3], '@') || bytes.ContainsRune(m[4], '@') { // then this may be part of a password
			host = []byte("REDACTED")
		}
		out := append(bytes.Clone(m[1]), host...)
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
