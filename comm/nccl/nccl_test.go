//go:build cuda && linux

package nccl

import (
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/commtest"
	"anneal/comm/local"
	"anneal/device/cuda"
	"anneal/device/cuda/emulator"
	"anneal/tensor"
)

// onCards returns a group of ranks with a card each, for goroutines of this process.
func onCards(t *testing.T) commtest.Maker {
	t.Helper()
	t.Setenv("ANNEAL_CUDA_PATH", emulator.Dir(t))
	return func(n int, timeout time.Duration) []comm.Comm {
		list := local.New(n, local.Options{Timeout: timeout})
		for r, boot := range list {
			card, err := cuda.New(r)
			if err != nil {
				t.Fatal(err)
			}
			world, err := Join(boot, card, timeout)
			if err != nil {
				t.Fatal(err)
			}
			list[r] = &patient{world, card, r == 0 || world != boot}
		}
		return list
	}
}

// patient is a rank whose host reads what comes and changes what was sent, so it waits for the card. The emulated card
// shares the host's memory.
type patient struct {
	comm.Comm
	card *cuda.Device
	owns bool // the card
}

func (p *patient) Group(ranks []int) (comm.Comm, error) {
	c, err := p.Comm.Group(ranks)
	return &patient{c, p.card, false}, err
}

func (p *patient) Close() error {
	err := p.Comm.Close()
	if p.owns {
		p.card.Close()
	}
	return err
}

func (p *patient) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	return &patientTransfer{p.Comm.NewExchange(name, out, room), p.card}
}

type patientTransfer struct {
	comm.Transfer
	card *cuda.Device
}

func (t *patientTransfer) Wait() error { return t.after(t.Transfer.Wait) }
func (t *patientTransfer) Sent() error { return t.after(t.Transfer.Sent) }

func (t *patientTransfer) after(wait func() error) error {
	if err := wait(); err != nil {
		return err
	}
	if err := t.card.Wait(); err != nil {
		return err
	}
	return t.Transfer.Wait() // the end of all groups, if that is why the card waits no more
}

func TestConformance(t *testing.T) { commtest.Run(t, onCards(t)) }
