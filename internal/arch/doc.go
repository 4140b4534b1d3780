// Package arch holds the test that keeps imports pointing one way.
package arch
