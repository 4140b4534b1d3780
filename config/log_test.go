package config

import (
	"strings"
	"testing"
)

func TestLogKeys(t *testing.T) {
	for _, c := range []struct{ set, fault string }{
		{"log.sinks=tensorboard, prometheus,trackio", ""},
		{"log.sinks=none", ""},
		{"log.sinks=tensorbord", "tensorboard"},
		{"log.sinks=trackio,trackio", "twice"},
		{"log.prometheus_listen=:9", "without log.sinks"},
		{"log.sinks=prometheus log.prometheus_listen=9464", "HOST:PORT"},
		{"log.sinks=prometheus log.prometheus_listen=example.com:1", "not an address"},
		{"log.sinks=prometheus log.prometheus_listen=[::1]:9464", ""},
		{"log.webhook=ftp://x", "http or https"},
		{"log.webhook=https://h.example/s3cret", ""},
		{"log.sinks=trackio log.trackio_project=a/b", "not a name"},
		{"log.every=0 log.sinks=trackio", "too small"},
	} {
		var set []string
		for x := range strings.SplitSeq(c.set, " log.") {
			set = append(set, "log."+strings.TrimPrefix(x, "log."))
		}
		_, err := Load("", append(set, "data.path=x"))
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", c.set, err, c.fault)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error has the secret: %v", c.set, err)
		}
	}
}
