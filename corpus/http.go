package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsnet/compress/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// httpResponse is an HTTP/1 response.
type httpResponse struct {
	status   int // 0 if there is none
	media    string
	body     []byte // decoded, if it is plain text or HTML
	unwanted string // why an intact response is not wanted
	unread   string // why its body cannot be decoded
}

// response parses an HTTP response (RFC 9112) and decodes its body, to at most limit bytes. The error describes what
// is invalid. Archives often store a decoded body with the headers of the encoded one, so a body that does not begin
// like the encoding in its headers is taken as it is. For an encoding whose beginning shows nothing, that is a body of
// UTF-8 that cannot be decoded.
func (d *bodyDecoder) response(message []byte, limit int) (r httpResponse, err error) {
	head, body, ok := cutHead(message)
	if !ok {
		return r, errors.New("HTTP: the header does not end")
	}
	status, rest, _ := bytes.Cut(head, []byte("\n"))
	words := strings.Fields(string(status[:min(len(status), 100)]))
	if len(words) < 2 || !strings.HasPrefix(words[0], "HTTP/") {
		return r, fmt.Errorf("HTTP: the status line is %.40q", status)
	}
	if words[1] != "200" {
		r.unwanted = fmt.Sprintf("HTTP status %.10s", words[1])
		return r, nil
	}
	r.status = 200
	var content, transfer []string // codings in the order in which they were applied
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		name, value, _ := bytes.Cut(line[:min(len(line), 1000)], []byte(":"))
		text := string(bytes.TrimSpace(value))
		switch strings.ToLower(string(name)) {
		case "content-type":
			r.media = text
		case "content-encoding":
			content = append(content, list(strings.ToLower(text))...)
		case "transfer-encoding":
			transfer = append(transfer, list(strings.ToLower(text))...)
		}
	}
	if kind := mediaType(r.media); kind != "text/plain" && !isHTML(kind) {
		return r, nil
	}
	codings := append(content, transfer...)
	if len(codings) > maxCodings {
		r.unread = fmt.Sprintf("%d encodings", len(codings))
		return r, nil
	}
	for i := len(codings) - 1; i >= 0; i-- {
		if body, err = d.decode(body, codings[i], limit); err != nil {
			r.unread = "HTTP body: " + err.Error()
			return r, nil
		}
	}
	r.body = body
	return r, nil
}

// cutHead cuts a message at its first empty line. Lines may end in a bare LF (RFC 9112, 2.2).
func cutHead(message []byte) (head, body []byte, ok bool) {
	for at := 0; ; {
		line, rest, ok := bytes.Cut(message[at:], []byte("\n"))
		if !ok || len(bytes.TrimSuffix(line, []byte("\r"))) == 0 {
			return message[:at], rest, ok
		}
		at += len(line) + 1
	}
}

// maxCodings is the largest number of codings of a body.
const maxCodings = 4

// list splits a text at commas.
func list(s string) (all []string) {
	for s := range strings.SplitSeq(s, ",") {
		if s = strings.TrimSpace(s); s != "" && s != "identity" && s != "none" {
			all = append(all, s)
		}
	}
	return all
}

// bodyDecoder holds the decoders, which are reused for one body after the other.
type bodyDecoder struct {
	gzip   gzipReader
	brotli *brotli.Reader
	zstd   *zstd.Decoder
}

// decode undoes one coding (RFC 9110, 8.4.1; RFC 9112, 7; RFC 7932; RFC 9659) into at most limit bytes.
func (d *bodyDecoder) decode(body []byte, coding string, limit int) ([]byte, error) {
	var src io.Reader
	var err error
	in := bytes.NewReader(body)
	switch coding {
	case "chunked":
		return unchunk(body)
	case "gzip", "x-gzip":
		if !bytes.HasPrefix(body, gzipMagic) {
			return body, nil
		}
		d.gzip.anyRest = true
		src, err = &d.gzip, d.gzip.Reset(in)
	case "deflate": // by the standard zlib, by some servers bare
		if len(body) >= 2 && body[0]&15 == 8 && (int(body[0])<<8|int(body[1]))%31 == 0 {
			src, err = zlib.NewReader(in)
		} else {
			src = flate.NewReader(in)
		}
	case "br":
		if d.brotli == nil {
			d.brotli = new(brotli.Reader)
		}
		src, err = d.brotli, d.brotli.Reset(in)
	case "zstd":
		if !bytes.HasPrefix(body, []byte("\x28\xb5\x2f\xfd")) {
			return body, nil
		}
		if d.zstd == nil {
			d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxBodyWindow))
			if err != nil {
				return nil, err
			}
		}
		src, err = d.zstd, d.zstd.Reset(in)
	default:
		err = errors.New("the encoding is not supported")
	}
	var decoded []byte
	if err == nil {
		decoded, err = io.ReadAll(io.LimitReader(src, int64(limit)+1))
	}
	switch {
	case (err != nil || in.Len() > 0) && isPlain(body): // some text begins like a short stream of deflate
		return body, nil
	case err != nil:
		return nil, fmt.Errorf("%.40q: %w", coding, truncated(err))
	case len(decoded) > limit:
		return nil, fmt.Errorf("%s: more than %d bytes", coding, limit)
	}
	return decoded, nil
}

// isPlain reports whether a body is text that nothing has encoded.
func isPlain(body []byte) bool { return utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 }

// maxBodyWindow is the most memory that RFC 9659 lets a body under zstd ask for.
const maxBodyWindow = 8 << 20

// mediaType is a content type without its parameters.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

func isHTML(media string) bool { return media == "text/html" || media == "application/xhtml+xml" }

// unchunk joins the chunks of a body, in place.
func unchunk(body []byte) ([]byte, error) {
	whole, out := body, body[:0]
	for {
		line, rest, ok := bytes.Cut(body, []byte("\r\n"))
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size[:min(len(size), 20)])), 16, 31)
		switch first := len(body) == len(whole); {
		case first && (!ok || err != nil):
			return whole, nil
		case !ok, err != nil, n > uint64(len(rest)):
			return nil, errors.New("broken chunks")
		case n == 0:
			return out, nil
		}
		out = append(out, rest[:n]...)
		if body, ok = bytes.CutPrefix(rest[n:], []byte("\r\n")); !ok {
			return nil, errors.New("broken chunks")
		}
	}
}
