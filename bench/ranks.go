package bench

import (
	"cmp"
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

// RanksResult compares steps of several ranks with those of one rank that has all their threads.
type RanksResult struct {
	Shape         string      `json:"shape"`
	Precision     string      `json:"precision"`
	Tier          string      `json:"tier"`
	Axis          string      `json:"axis"` // along which the ranks share the work
	Context       int         `json:"context"`
	TokensPerStep int         `json:"tokens_per_step"`
	MicroBatches  int         `json:"micro_batches"` // of a step
	Rounds        int         `json:"rounds"`
	Cases         []RanksCase `json:"cases"` // one rank first
}

// RanksCase is one way to share out the same steps.
type RanksCase struct {
	Name            string   `json:"name"`
	Settings        []string `json:"settings"` // of its configuration
	Ranks           int      `json:"ranks"`
	Threads         int      `json:"threads"` // of each rank
	StepMs          float64  `json:"step_ms"` // the median of all
	TokensPerSecond float64  `json:"tokens_per_second"`
	OfOneRank       float64  `json:"of_one_rank"` // speed over that of one rank: the median of the rounds
	OfFirst         float64  `json:"of_first"`    // over that of the first case of several ranks; 0 for one rank

	Pipeline *PipelineCost `json:"pipeline,omitempty"`

	steps  int            // steps of a round; 0 for stepsPerRound
	times  []float64      // of all steps, ms
	rounds []float64      // least time of each round
	stages [][]stageTimes // by round and rank
}

// stepsPerRound is the number of steps of a case that a round measures, after one to warm up.
const stepsPerRound = 2

// Ranks times training steps of one rank and of several, for each way to share the work along an axis (Axes). The
// ranks are goroutines of this process and share out o.Threads. The cases take turns, in at least three rounds, until
// o.Seconds are measured. Each has the memory of the machine to itself.
func Ranks(ctx context.Context, o Options, axis string, ranks int) (*RanksResult, error) {
	return o.ranks(ctx, axis, ranks, ranks, inProcess)
}

// RanksOver is Ranks for the ranks of a world, which are processes. All ranks call it and get the same result. The
// threads of a machine are shared out among its ranks; while rank 0 measures one rank that has all threads, the others
// sleep.
func RanksOver(ctx context.Context, o Options, axis string, world comm.Comm) (*RanksResult, error) {
	beside, err := ranksHere(world)
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
	return o.ranks(ctx, axis, world.Size(), beside, measure)
}

// ranksHere returns how many ranks of a world of processes this machine has.
func ranksHere(world comm.Comm) (n int, err error) {
	host, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	all, err := world.Share([]byte(host))
	for _, other := range all {
		if string(other) == host {
			n++
		}
	}
	return n, err
}

// measured holds the times of the steps of a case.
type measured struct {
	Tier   string       `json:"tier"`
	Times  []float64    `json:"times"`  // of steps, ms
	Stages []stageTimes `json:"stages"` // by rank
}

// ranks compares one rank with several, of which some are on this machine.
func (o Options) ranks(ctx context.Context, axis string, ranks, beside int,
	measure func(context.Context, *config.Config, *RanksCase) (measured, error)) (*RanksResult, error) {
	if ranks < 2 {
		return nil, config.Problem{
			Key: "parallel.ranks", Message: fmt.Sprintf("ranks = %d: comparing with one rank needs several", ranks),
			Try: "2 or more",
		}
	}
	cfg, micro, cases, err := o.alongAxis(axis, ranks)
	if err != nil {
		return nil, err
	}
	threads, err := threadsOfRank(cfg, beside)
	if err != nil {
		return nil, err
	}
	r := &RanksResult{
		Shape: o.Shape, Precision: o.Precision, Axis: axis, Context: cfg.Model.Context,
		TokensPerStep: cfg.Train.BatchTokens, MicroBatches: micro,
		Cases: []RanksCase{{Name: "one rank", Ranks: 1, Threads: beside * threads}},
	}
	configs := []*config.Config{cfg}
	for _, c := range cases {
		c.Ranks, c.Threads = ranks, threads
		mine, err := c.configure(cfg)
		if err != nil {
			return nil, err
		}
		r.Cases, configs = append(r.Cases, c), append(configs, mine)
	}
	for total := 0.0; r.Rounds < 3 || total < 1e3*o.Seconds; r.Rounds++ {
		for i := range r.Cases {
			c := &r.Cases[i]
			m, err := measure(ctx, configs[i], c)
			if err != nil {
				return nil, err
			}
			r.Tier = m.Tier
			c.times, c.rounds = append(c.times, m.Times...), append(c.rounds, slices.Min(m.Times))
			c.stages = append(c.stages, m.Stages)
			for _, ms := range m.Times {
				total += ms
			}
			if o.OnStep != nil {
				o.OnStep(r.Rounds, time.Duration(total*float64(time.Millisecond)))
			}
		}
	}
	r.compare()
	if axis == "pipeline" {
		return r, r.comparePipelines()
	}
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
			Message: fmt.Sprintf("%d ranks need one thread each, but there are only %d", ranks, dev.Threads()),
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
			if errs[i] = ranks[i].run(ctx, cfg, group[i], c); errs[i] != nil {
				group[i].Abort(errs[i])
			}
		})
	}
	all.Wait()
	for i := range ranks { // after all have ended: ranks read each other's tensors
		ranks[i].close()
	}
	m := measured{Tier: ranks[0].tier, Times: ranks[0].times}
	for i := range ranks {
		m.Stages = append(m.Stages, ranks[i].stage)
	}
	return m, firstCause(errs)
}

// apart measures a case on processes. All ranks get the times of rank 0. While rank 0 measures a single rank, the
// others sleep for that time before they wait for it. After an error the memory is not freed, because other ranks may
// still read it.
func apart(ctx context.Context, cfg *config.Config, c *RanksCase, world comm.Comm,
	asleep time.Duration) (measured, error) {
	var rank benchRank
	var err error
	switch {
	case c.Ranks > 1:
		err = rank.run(ctx, cfg, world, c)
	case world.Rank() == 0:
		err = rank.run(ctx, cfg, comm.Alone{}, c)
	default:
		time.Sleep(asleep)
	}
	if err != nil {
		return measured{}, err
	}
	text, err := json.Marshal(measured{rank.tier, rank.times, []stageTimes{rank.stage}})
	if err != nil {
		return measured{}, err
	}
	all, err := world.Share(text)
	if err != nil {
		return measured{}, err
	}
	rank.close() // after this exchange no rank reads its tensors
	var m measured
	for i, text := range all {
		var one measured
		if err := json.Unmarshal(text, &one); err != nil {
			return measured{}, err
		}
		if i == 0 {
			m.Tier, m.Times = one.Tier, one.Times
		}
		m.Stages = append(m.Stages, one.Stages...)
	}
	return m, nil
}

// firstCause returns the first error that is not merely a rank's report that it lost another.
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
	stage   stageTimes
}

func (b *benchRank) run(ctx context.Context, cfg *config.Config, world comm.Comm, c *RanksCase) (err error) {
	if b.dev, err = train.OpenDevice(cfg, "", c.Threads); err != nil {
		return err
	}
	b.tier = b.dev.Kernels()
	if b.trainer, err = train.NewRank(cfg, b.dev, world); err != nil {
		return err
	}
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	for step := range 1 + cmp.Or(c.steps, stepsPerRound) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if step > 0 {
			b.stage.follow(b.trainer)
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
	one, first := r.Cases[0].rounds, r.Cases[1].rounds
	for i := range r.Cases {
		c := &r.Cases[i]
		c.StepMs = medianOf(c.times)
		c.TokensPerSecond = float64(r.TokensPerStep) / c.StepMs * 1e3
		c.OfOneRank = medianRatio(one, c.rounds)
		if i > 0 {
			c.OfFirst = medianRatio(first, c.rounds)
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

func meanOf(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

func medianOf(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
