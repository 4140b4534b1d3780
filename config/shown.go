package config

import "net/url"

// Shown returns a copy for others to see: without the values that may hold secrets, which are the address of
// log.webhook, and what log.trackio_url has besides scheme, host and path.
func (c *Config) Shown() *Config {
	s := c.Clone()
	if s.Log.Webhook != "" {
		s.Log.Webhook = "REDACTED"
	}
	u, err := url.Parse(s.Log.TrackioURL)
	if err != nil {
		s.Log.TrackioURL = "REDACTED"
		return s
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	s.Log.TrackioURL = u.String()
	return s
}
