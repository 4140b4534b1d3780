package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"anneal/comm"
	"anneal/comm/local"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/train"
)

// RanksResult compares steps of several ranks with those of one that has all their threads.
type RanksResult struct {
	Shape         string      `json:"shape"`
	Precision     string      `json:"precision"`
	Tier          string      `json:"tier"`
	TokensPerStep int         `json:"tokens_per_step"`
	MicroBatches  int         `json:"micro_batches"` // of a step, one for each rank
	Rounds        int         `json:"rounds"`
	Cases         []RanksCase `json:"cases"` // one rank first, then ZeRO 0 to 3
}

// RanksCase is one of the ways to make the same steps.
type RanksCase struct {
	Ranks           int     `json:"ranks"`
	Threads         int     `json:"threads"` // of each rank
	Zero            int     `json:"zero"`    // stage
	StepMs          float64 `json:"step_ms"` // the median of all
	TokensPerSecond float64 `json:"tokens_per_second"`
	OfOneRank       float64 `json:"of_one_rank"` // speed over that of one rank: the median of the rounds
	OfZero0         float64 `json:"of_zero_0"`   // over that of the ranks at stage 0; 0 for one rank

	times  []float64 // of all steps, ms
	rounds []float64 // of each round, the least
}

// stepsPerRound is how many steps of a case a round measures, after one to warm up.
const stepsPerRound = 2

// Ranks times training steps of one rank and of several, which are goroutines of this process and share out o.Threads,
// at every stage of ZeRO. The cases take turns, in at least three rounds, until o.Seconds are measured. Each has the
// memory of the machine to itself.
func Ranks(ctx context.Context, o Options, ranks int) (*RanksResult, error) {
	return o.ranks(ctx, ranks, ranks, inProcess)
}

// RanksOver is Ranks for the ranks of a world, which are processes. All call it, and get the same result. The threads
// of a machine are shared out among its ranks; while rank 0 measures one rank that has all threads, the others sleep.
func RanksOver(ctx context.Context, o Options, world comm.Comm) (*RanksResult, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	beside := 0
	all, err := world.Share([]byte(host))
	for _, other := range all {
		if string(other) == host {
			beside++
		}
	}
	if err != nil {
		return nil, err
	}
	asleep := time.Duration(0)
	measure := func(ctx context.Context, cfg *config.Config, c *RanksCase) (measured, error) {
		began := time.Now()
		m, err := apart(ctx, cfg, c, world, asleep)
		if c.Ranks == 1 {
			asleep = time.Since(began) * 9 / 10
		}
		return m, err
	}
	return o.ranks(ctx, world.Size(), beside, measure)
}

// measured is what steps of a case took.
type measured struct {
	Tier  string    `json:"tier"`
	Times []float64 `json:"times"` // of steps, ms
}

// ranks compares one rank with several, of which some are on this machine.
func (o Options) ranks(ctx context.Context, ranks, beside int,
	measure func(context.Context, *config.Config, *RanksCase) (measured, error)) (*RanksResult, error) {
	if ranks < 2 {
		return nil, config.Problem{
			Key: "parallel.ranks", Message: fmt.Sprintf("ranks = %d: one rank is compared with several", ranks),
			Try: "2 or more",
		}
	}
	cfg, err := o.config()
	if err != nil {
		return nil, err
	}
	threads, err := threadsOfRank(cfg, beside)
	if err != nil {
		return nil, err
	}
	cfg.Train.BatchTokens *= ranks
	r := &RanksResult{
		Shape: o.Shape, Precision: o.Precision, TokensPerStep: cfg.Train.BatchTokens, MicroBatches: ranks,
		Cases: []RanksCase{{Ranks: 1, Threads: beside * threads}},
	}
	for stage := range 4 {
		r.Cases = append(r.Cases, RanksCase{Ranks: ranks, Threads: threads, Zero: stage})
	}
	for total := 0.0; r.Rounds < 3 || total < 1e3*o.Seconds; r.Rounds++ {
		for i := range r.Cases {
			c := &r.Cases[i]
			mine := cfg.Clone()
			mine.Parallel.Zero = c.Zero
			m, err := measure(ctx, mine, c)
			if err != nil {
				return nil, err
			}
			r.Tier = m.Tier
			c.times, c.rounds = append(c.times, m.Times...), append(c.rounds, slices.Min(m.Times))
			for _, ms := range m.Times {
				total += ms
			}
			if o.OnStep != nil {
				o.OnStep(r.Rounds, time.Duration(total*float64(time.Millisecond)))
			}
		}
	}
	r.compare()
	return r, nil
}

// threadsOfRank returns how many threads each of several ranks of this machine has.
func threadsOfRank(cfg *config.Config, ranks int) (int, error) {
	dev, err := train.OpenDevice(cfg, "", 0)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	if dev.Threads() < ranks {
		return 0, config.Problem{
			Key:     "parallel.ranks",
			Message: fmt.Sprintf("%d ranks need a thread each, and there are %d", ranks, dev.Threads()),
			Try:     fmt.Sprintf("%d ranks or fewer", dev.Threads()),
		}
	}
	return dev.Threads() / ranks, nil
}

// inProcess measures a case on goroutines.
func inProcess(ctx context.Context, cfg *config.Config, c *RanksCase) (measured, error) {
	group := []comm.Comm{comm.Alone{}}
	if c.Ranks > 1 {
		group = local.New(c.Ranks, local.Options{})
	}
	ranks := make([]benchRank, c.Ranks)
	errs := make([]error, c.Ranks)
	var all sync.WaitGroup
	for i := range ranks {
		all.Go(func() {
			if errs[i] = ranks[i].run(ctx, cfg, group[i], c.Threads); errs[i] != nil {
				group[i].Abort(errs[i])
			}
		})
	}
	all.Wait()
	for i := range ranks { // after all have ended: ranks read each other's tensors
		ranks[i].close()
	}
	return measured{ranks[0].tier, ranks[0].times}, firstCause(errs)
}

// apart measures a case on processes. All get the times of rank 0, which measures one rank by itself; the others sleep
// that long before they wait for it.
func apart(ctx context.Context, cfg *config.Config, c *RanksCase, world comm.Comm,
	asleep time.Duration) (measured, error) {
	var rank benchRank
	defer rank.close() // when all have shared, nobody reads its tensors any more
	var err error
	switch {
	case c.Ranks > 1:
		err = rank.run(ctx, cfg, world, c.Threads)
	case world.Rank() == 0:
		err = rank.run(ctx, cfg, comm.Alone{}, c.Threads)
	default:
		time.Sleep(asleep)
	}
	if err != nil {
		return measured{}, err
	}
	text, err := json.Marshal(measured{rank.tier, rank.times})
	if err != nil {
		return measured{}, err
	}
	all, err := world.Share(text)
	if err != nil {
		return measured{}, err
	}
	var m measured
	return m, json.Unmarshal(all[0], &m)
}

// firstCause returns the first error of a rank that is not only about the loss of another.
func firstCause(errs []error) error {
	var lost *comm.LostError
	for _, err := range errs {
		if err != nil && !errors.As(err, &lost) {
			return err
		}
	}
	return errors.Join(errs...)
}

// benchRank is one rank of a case.
type benchRank struct {
	dev     device.Device
	trainer *train.Trainer
	tier    string
	times   []float64 // of its steps, ms
}

func (b *benchRank) run(ctx context.Context, cfg *config.Config, world comm.Comm, threads int) (err error) {
	if b.dev, err = train.OpenDevice(cfg, "", threads); err != nil {
		return err
	}
	b.tier = b.dev.Kernels()
	if b.trainer, err = train.NewRank(cfg, b.dev, world); err != nil {
		return err
	}
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	for step := range 1 + stepsPerRound {
		if err := ctx.Err(); err != nil {
			return err
		}
		begin := time.Now()
		if _, err := b.trainer.Step(ctx, src); err != nil {
			return err
		}
		if step > 0 {
			b.times = append(b.times, time.Since(begin).Seconds()*1e3)
		}
	}
	return b.trainer.Settle()
}

func (b *benchRank) close() {
	if b.trainer != nil {
		b.trainer.Close()
	}
	if b.dev != nil {
		b.dev.Close()
	}
}

// compare fills in medians and ratios. A ratio compares cases round by round, so that a machine that becomes slower
// does not change it.
func (r *RanksResult) compare() {
	one, zero := r.Cases[0].rounds, r.Cases[1].rounds
	for i := range r.Cases {
		c := &r.Cases[i]
		c.StepMs = medianOf(c.times)
		c.TokensPerSecond = float64(r.TokensPerStep) / c.StepMs * 1e3
		c.OfOneRank = medianRatio(one, c.rounds)
		if i > 0 {
			c.OfZero0 = medianRatio(zero, c.rounds)
		}
	}
}

func medianRatio(over, under []float64) float64 {
	var list []float64
	for i := range over {
		list = append(list, over[i]/under[i])
	}
	return medianOf(list)
}

func medianOf(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
