// Package config holds everything that a run can be told: one typed Config, read from YAML and dotted overrides, with an
// origin for every value.
//
// Reading is strict. An unknown key, a wrong type and a combination that cannot work are all errors; one call reports
// all of them, each with its position and the nearest key that exists. What a user leaves out is a default or is derived
// by a stated rule, and YAML prints which.
//
// Start with Config (config.go), then Load (load.go), Resolve (resolve.go) and Validate (validate.go); what each key
// means stands in keys.go, where `anneal explain` finds it. The package imports plan, and dataset, model and schedule for
// what its keys mean.
package config
