package webguard

import (
	"net/http"
	"testing"

	_ "anneal/internal/torture"
)

func TestNames(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:7070": true, "[::1]:7070": true, "[::1]": true, "10.0.0.7": true, "localhost": true,
		"LOCALHOST.:80": true, "run.localhost:7070": true, "trainer:7070": true, "Trainer": true,
		"": false, "evil.example": false, "localhost.evil.example:7070": false, "notlocalhost": false,
		"trainer.evil": false,
	} {
		if got := Names(host, []string{"trainer"}); got != want {
			t.Errorf("Host %q: %v, want %v", host, got, want)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for origin, want := range map[string]bool{
		"": true, "http://localhost:7070": true, "http://trainer": true, "https://evil.example": false, "null": false,
		"://": false, "http://127.0.0.1:3000": true, "http://[::1]:3000": true, "http://10.0.0.7:7070": true,
		"http://10.0.0.7": false, "http://203.0.113.9": false, "http://203.0.113.9:7070": false,
		"http://[2001:db8::1]": false,
	} {
		r := &http.Request{Header: http.Header{}, Host: "10.0.0.7:7070"}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if got := SameOrigin(r, []string{"trainer"}); got != want {
			t.Errorf("Origin %q: %v, want %v", origin, got, want)
		}
	}
}

func TestShows(t *testing.T) {
	for header, want := range map[string]bool{
		"Bearer secret": true, "bearer secret": true, "": false, "secret": false, "Bearer ": false,
		"Bearer secrets": false, "Basic secret": false, "Bearersecret": false,
	} {
		r := &http.Request{Header: http.Header{"Authorization": {header}}}
		if got := Shows(r, "secret"); got != want {
			t.Errorf("Authorization %q: %v, want %v", header, got, want)
		}
	}
}
