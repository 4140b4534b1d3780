package config

import "net/url"

// Shown returns a copy that is safe to display. It lacks values that may hold secrets: the address of log.webhook, and
// everything in log.trackio_url besides scheme, host and path.
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
