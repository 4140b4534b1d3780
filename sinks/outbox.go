package sinks

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"anneal/internal/relay"
)

// patience is how long the end of a run waits for a sink.
var patience = 5 * time.Second

// outbox is the bounded queue before a sink that may be slow, unreachable or hang.
type outbox struct {
	relay *relay.Relay
	stop  context.CancelFunc
	warn  func(string)
	name  string
	lost  atomic.Int64 // pieces dropped since the last warning

	refusal sync.Once // the warning of the first refused piece
}

// newOutbox returns a queue of so many pieces that write empties; write must return when its context ends. A piece
// that fails is tried again after each retry; if retry is 0, it is dropped.
func newOutbox(name string, pieces int, retry time.Duration, warn func(string),
	write func(context.Context, []byte) (int, error)) *outbox {
	ctx, stop := context.WithCancel(context.Background())
	o := &outbox{stop: stop, warn: warn, name: name}
	o.relay = relay.New(writer(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil { // the time to close is over: the rest is dropped
			return 0, err
		}
		return write(ctx, p)
	}), relay.Options{
		Pieces: pieces, Retry: retry,
		Failed: func(err error) {
			if ctx.Err() == nil {
				warn(fmt.Sprintf("%s does not take what it is told: %v\n  training continues", name, err))
			}
		},
		Lost: func([]byte) { o.lost.Add(1) },
		Recovered: func(err error) []byte {
			if err != nil {
				warn(name + " takes what it is told again")
			}
			o.tellLost()
			return nil
		},
	})
	return o
}

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// put takes a piece and returns at once.
func (o *outbox) put(piece []byte) { o.relay.Write(piece) }

// close writes the remaining pieces, for at most patience in all, and reports whether the writer is no longer in use.
func (o *outbox) close() bool {
	late := time.AfterFunc(patience, o.stop)
	ended := o.relay.Close(patience + time.Second)
	late.Stop()
	o.stop()
	o.tellLost()
	if !ended {
		o.warn(o.name + " does not answer: the last that it should have been told is lost")
	}
	return ended
}

// refused drops a piece that the sink will never take.
func (o *outbox) refused(err error) {
	o.lost.Add(1)
	o.refusal.Do(func() { o.warn(fmt.Sprintf("%s refuses a message: %v\n  training continues", o.name, err)) })
}

func (o *outbox) tellLost() {
	if n := o.lost.Swap(0); n > 0 {
		o.warn(fmt.Sprintf("%s was too slow or away, or refused them: dropped %d of the messages to it", o.name, n))
	}
}
