// Package config holds all settings of a run: one typed Config, read from YAML and dotted overrides, with an origin
// for every value.
//
// Reading is strict. An unknown key, a wrong type and a combination that cannot work are errors; one call reports all
// of them, each with its position and the nearest known key. A key that the user does not set has its default or is
// derived by a documented rule, and YAML prints which.
//
// Start with Config (config.go), then Load (load.go), Resolve (resolve.go) and Validate (validate.go); notes.go
// explains each key for `anneal explain`. The package imports attention, dataset, model, precision, program and
// schedule for the types behind its keys, and internal packages.
package config
