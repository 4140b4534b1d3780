// Package webguard decides which requests an HTTP server on this machine may answer, by the names of this machine and
// by a token, and limits the number of connections. It imports only the standard library.
package webguard

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Names reports whether a Host header, with or without a port, names this machine: by an IP address, as localhost or
// by one of names. A page of another site whose name resolves to this machine (DNS rebinding) sends the name of that
// site.
func Names(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}

// SameOrigin reports whether a request comes from a page of this machine or from no web page: browsers send Origin
// with the posts of a page. An IP address as Origin identifies this machine only if it is a loopback address or the
// address that the request was sent to, because any site may have an IP address.
func SameOrigin(r *http.Request, names []string) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || !Names(u.Host, names) {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || ip.IsLoopback() || u.Host == r.Host
}

// Shows reports whether a request has the header `Authorization: Bearer TOKEN`, in constant time. The scheme may be in
// small letters (RFC 9110).
func Shows(r *http.Request, token string) bool {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}
