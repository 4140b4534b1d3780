package run

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// warnings passes the warnings of a logger to a function that takes messages for users.
type warnings struct{ warn func(string) }

func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle writes the attributes below the message, one per line.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, "\n  %s: %v", a.Key, a.Value)
		return true
	})
	w.warn(b.String())
	return nil
}

// WithAttrs and WithGroup are never called: nothing derives loggers from this one.
func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w warnings) WithGroup(string) slog.Handler      { return w }
