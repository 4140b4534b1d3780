package commtest_test

import (
	"errors"
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/commtest"
	"anneal/comm/local"
	_ "anneal/internal/torture"
	"anneal/tensor"
)

func group(n int) []comm.Comm { return local.New(n, local.Options{Timeout: time.Minute}) }

// broken is a transport with a fault.
type broken struct {
	comm.Comm
	fault string
	said  [][]byte
}

func (b *broken) Share(mine []byte) ([][]byte, error) {
	all, err := b.Comm.Share(mine)
	if b.fault == "a message comes twice" && err == nil {
		if b.said == nil {
			for _, m := range all {
				b.said = append(b.said, append([]byte{}, m...))
			}
		}
		return b.said, nil
	}
	return all, err
}

func (b *broken) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	return &brokenTransfer{b.Comm.NewExchange(name, out, room), b}
}

type brokenTransfer struct {
	comm.Transfer
	*broken
}

func (t *brokenTransfer) From(r int) []tensor.Tensor {
	from := t.Transfer.From(r)
	switch {
	case t.fault == "ranks are swapped" && r < 2:
		return t.Transfer.From(1 - r)
	case t.fault == "a bit flips" && len(from) > 0 && from[0].Bytes() > 1000 && r != t.Rank():
		bad := tensor.Of(make([]float32, from[0].Len()))
		copy(bad.Raw(), from[0].Raw())
		bad.Raw()[999] ^= 4
		return append([]tensor.Tensor{*bad}, from[1:]...)
	case t.fault == "a tensor is left out" && len(from) > 1:
		return from[1:]
	}
	return from
}

func TestProgramFindsFaults(t *testing.T) {
	for _, fault := range []string{
		"a message comes twice", "ranks are swapped", "a bit flips", "a tensor is left out",
	} {
		found := false
		for _, err := range commtest.Each(group(3), func(c comm.Comm) error {
			err := commtest.Program(&broken{Comm: c, fault: fault})
			if err != nil {
				c.Abort(err)
			}
			return err
		}) {
			found = found || err != nil
		}
		if !found {
			t.Errorf("%s, and Program does not find it", fault)
		}
	}
}

// x sends n float32 to all.
func exchange(c comm.Comm, n int) comm.Transfer {
	out := make([][]tensor.Tensor, c.Size())
	for r := range out {
		out[r] = []tensor.Tensor{*tensor.Of(make([]float32, n))}
	}
	return c.NewExchange("x", out, nil)
}

// A rank that waits for the last read of its tensors before it starts what comes next needs a transport with buffers.
func TestStrictFindsProgramsThatNeedBuffers(t *testing.T) {
	errs := commtest.Each(local.New(2, local.Options{Timeout: 50 * time.Millisecond}), func(c comm.Comm) error {
		c = commtest.Strict(c)
		x, y := exchange(c, 1), exchange(c, 1)
		x.Start(1)
		if c.Rank() == 0 { // nothing comes here
			if err := x.Sent(); err != nil {
				return err
			}
		}
		y.Start(2)
		if err := x.Wait(); err != nil {
			return err
		}
		x.Release()
		return y.Wait()
	})
	for r, err := range errs {
		var lost *comm.LostError
		if !errors.As(err, &lost) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestAKilledRankIsSilent(t *testing.T) {
	errs := commtest.Each(local.New(2, local.Options{Timeout: 50 * time.Millisecond}), func(c comm.Comm) error {
		if c.Rank() == 1 {
			c = commtest.Kill(c, 2)
		}
		for range 3 {
			if _, err := c.Share(nil); err != nil {
				c.Abort(err)
				return err
			}
		}
		return nil
	})
	var lost *comm.LostError
	if !errors.As(errs[0], &lost) || lost.Rank != 1 || lost.For == 0 {
		t.Errorf("rank 0: %v", errs[0])
	}
	if !errors.Is(errs[1], commtest.ErrKilled) {
		t.Errorf("rank 1: %v", errs[1])
	}
}

// 1,000 float32 at 1 MB/s take 4 ms to leave, and 10 ms to arrive.
var network = commtest.Network{Latency: 10 * time.Millisecond, BytesPerSecond: 1e6}

func TestANetworkTakesItsTime(t *testing.T) {
	ranks := network.Clocks(group(2))
	var list []comm.Comm
	for _, c := range ranks {
		list = append(list, c)
	}
	for _, c := range []struct {
		name string
		run  func(c *commtest.Clock) error
		want [2]time.Duration // by rank, from the start
	}{
		{"nothing to do meanwhile", func(c *commtest.Clock) error {
			x := exchange(c, 1000)
			x.Start(2)
			return x.Wait()
		}, [2]time.Duration{14 * time.Millisecond, 14 * time.Millisecond}},
		{"computing meanwhile", func(c *commtest.Clock) error {
			x := exchange(c, 1000)
			x.Start(2)
			c.Compute(20 * time.Millisecond)
			return x.Wait()
		}, [2]time.Duration{20 * time.Millisecond, 20 * time.Millisecond}},
		{"one sends", func(c *commtest.Clock) error {
			x := exchange(c, 1000)
			x.Start(1)
			return x.Wait()
		}, [2]time.Duration{0, 14 * time.Millisecond}},
		{"two at a time leave one after the other", func(c *commtest.Clock) error {
			x, y := exchange(c, 1000), exchange(c, 1000)
			x.Start(2)
			y.Start(2)
			if err := x.Wait(); err != nil {
				return err
			}
			x.Release()
			return y.Wait()
		}, [2]time.Duration{18 * time.Millisecond, 18 * time.Millisecond}},
		{"each waits for the message of the other", func(c *commtest.Clock) error {
			c.Compute(time.Duration(c.Rank()) * 5 * time.Millisecond)
			_, err := c.Share(nil)
			return err
		}, [2]time.Duration{15 * time.Millisecond, 10 * time.Millisecond}},
	} {
		var took [2]time.Duration
		begin := max(ranks[0].Now(), ranks[1].Now())
		for _, c := range ranks {
			c.Compute(begin + time.Second - c.Now())
		}
		begin += time.Second
		for _, err := range commtest.Each(list, func(x comm.Comm) error {
			rank := x.(*commtest.Clock)
			err := c.run(rank)
			took[rank.Rank()] = rank.Now() - begin
			return err
		}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if took != c.want {
			t.Errorf("%s: %v, want %v", c.name, took, c.want)
		}
	}
}

func TestProgramsRunOverANetwork(t *testing.T) {
	var list []comm.Comm
	for _, c := range network.Clocks(group(3)) {
		list = append(list, c)
	}
	for _, group := range [][]comm.Comm{
		list, commtest.Network{Latency: 10 * time.Microsecond, BytesPerSecond: 1e9}.Delay(group(3)),
	} {
		for _, err := range commtest.Each(group, func(c comm.Comm) error { return commtest.Random(c, 3, 200) }) {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// What is sent arrives while the ranks compute, and not before its time.
func TestDelayOverlapsWithComputing(t *testing.T) {
	const busy, takes = 40 * time.Millisecond, 14 * time.Millisecond
	for _, err := range commtest.Each(network.Delay(group(2)), func(c comm.Comm) error {
		x := exchange(c, 1000)
		least := time.Hour // a busy machine may be late
		for round := range 6 {
			begun := time.Now() // before the other rank can start, which a busy machine may run first
			if _, err := c.Share(nil); err != nil {
				return err
			}
			x.Start(2)
			if round > 0 {
				time.Sleep(busy)
			}
			at := time.Now()
			if err := x.Wait(); err != nil {
				return err
			}
			if took := time.Since(begun); took < takes {
				t.Errorf("what takes %v is there after %v", takes, took)
			}
			if round > 0 {
				least = min(least, time.Since(at))
			}
			x.Release()
		}
		if least > takes/2 {
			t.Errorf("after %v of computing, %v are waited for what takes %v", busy, least, takes)
		}
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
}
