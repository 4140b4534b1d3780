package corpus

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// httpText takes an HTTP/1 response apart (RFC 9112), as far as its text can be had: the content type and, if that is
// plain text or HTML, the body, of at most limit bytes. Fail says why a sound response is not wanted, fault what is broken.
func httpText(response []byte, limit int) (media string, body []byte, fail, fault string) {
	head, body, ok := bytes.Cut(response, []byte("\r\n\r\n"))
	if !ok {
		return "", nil, "", "HTTP: the head does not end"
	}
	status, rest, _ := bytes.Cut(head, []byte("\r\n"))
	words := strings.Fields(string(status[:min(len(status), 100)]))
	if len(words) < 2 || !strings.HasPrefix(words[0], "HTTP/") {
		return "", nil, "", fmt.Sprintf("HTTP: the status line is %.40q", status)
	}
	if words[1] != "200" {
		return "", nil, fmt.Sprintf("HTTP status %.10s", words[1]), ""
	}
	chunked, packed := false, false
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, _ := bytes.Cut(line[:min(len(line), 1000)], []byte(":"))
		text := strings.ToLower(string(bytes.TrimSpace(value)))
		switch strings.ToLower(string(name)) {
		case "content-type":
			media = text
		case "transfer-encoding":
			chunked = text == "chunked"
		case "content-encoding":
			switch text {
			case "gzip", "x-gzip":
				packed = true
			case "", "identity":
			default:
				fail = fmt.Sprintf("HTTP body in encoding %.40q", text)
			}
		}
	}
	if kind := mediaType(media); kind != "text/plain" && !isHTML(kind) {
		return media, nil, "", ""
	}
	if fail != "" {
		return media, nil, fail, ""
	}
	if chunked {
		if body, ok = unchunk(body); !ok {
			return media, nil, "", "HTTP: broken chunks"
		}
	}
	if packed {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(io.LimitReader(z, int64(limit)+1))
		}
		if err != nil {
			return media, nil, "", "HTTP body: " + err.Error()
		}
		if len(body) > limit {
			return media, nil, fmt.Sprintf("HTTP body of more than %d bytes", limit), ""
		}
	}
	return media, body, "", ""
}

// mediaType is a content type without its parameters.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

func isHTML(media string) bool { return media == "text/html" || media == "application/xhtml+xml" }

// unchunk joins the chunks of a body, in place.
func unchunk(body []byte) ([]byte, bool) {
	out := body[:0]
	for {
		line, rest, ok := bytes.Cut(body, []byte("\r\n"))
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size[:min(len(size), 20)])), 16, 31)
		switch {
		case !ok, err != nil, n > uint64(len(rest)):
			return nil, false
		case n == 0:
			return out, true
		}
		out = append(out, rest[:n]...)
		if body, ok = bytes.CutPrefix(rest[n:], []byte("\r\n")); !ok {
			return nil, false
		}
	}
}
