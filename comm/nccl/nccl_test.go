//go:build cuda && linux

package nccl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
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
func onCards(n int, timeout time.Duration) []comm.Comm {
	cards := make([]*cuda.Device, n)
	for r := range cards { // before the timeout counts: a busy machine takes long for them
		card, err := cuda.New(r)
		if err != nil {
			panic(err)
		}
		cards[r] = card
	}
	list := local.New(n, local.Options{Timeout: timeout})
	var all sync.WaitGroup
	for r, boot := range list {
		all.Go(func() {
			world, err := Join(boot, cards[r], timeout)
			if err != nil {
				panic(err)
			}
			list[r] = &patient{world, cards[r], true}
		})
	}
	all.Wait()
	return list
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

func TestConformance(t *testing.T) {
	t.Setenv("ANNEAL_CUDA_PATH", emulator.Dir(t))
	commtest.Run(t, onCards)
}

// These are tests of their own processes: the libraries read their environment when a process begins.
const sceneVariable, loseVariable = "ANNEAL_NCCL_SCENE", "ANNEAL_NCCL_LOSE"

func TestMain(m *testing.M) {
	timeout, err := time.ParseDuration(os.Getenv(sceneVariable))
	if err != nil {
		os.Exit(m.Run())
	}
	ranks := onCards(2, timeout)
	if os.Getenv(loseVariable) != "" {
		time.AfterFunc(300*time.Millisecond, func() { ranks[1].Abort(errors.New("the card is lost")) })
	}
	for r, err := range commtest.Each(ranks, commtest.Program) {
		fmt.Printf("rank %d: %v\n", r, err)
	}
}

// scene returns what two ranks that wait for each other for at most timeout print in a process of their own.
func scene(t *testing.T, timeout time.Duration, environment ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), sceneVariable+"="+timeout.String(), "ANNEAL_CUDA_PATH="+emulator.Dir(t))
	cmd.Env = append(cmd.Env, environment...)
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || strings.Contains(text, "<nil>") {
		t.Fatalf("%v\n%s", err, text)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("after %v", took)
	}
	return text
}

// What fails on a card while the host has gone on ends all ranks at once, and the error says where it was.
func TestAFailureOfTheLibraryEndsAllRanks(t *testing.T) {
	text := scene(t, time.Minute, "ANNEAL_EMULATOR_NCCL_FAIL=9")
	if strings.Count(text, "remote process exited") < 2 || !strings.Contains(text, "was lost in ") {
		t.Error(text)
	}
}

// The library has no deadline for ranks that meet in it, but they do.
func TestAHangWhileRanksMeetEnds(t *testing.T) {
	host, _ := os.Hostname()
	for _, where := range []string{"INIT", "CONNECT"} {
		text := scene(t, time.Second, "ANNEAL_EMULATOR_NCCL_HANG_"+where+"=1")
		const what = "the creation of NCCL's communicator of ranks [0 1]: NCCL has not connected"
		if !strings.Contains(text, " on "+host+" was lost in "+what) || strings.Count(text, "for 1s") < 2 {
			t.Errorf("%s: %s", where, text)
		}
	}
}

// A rank that is lost while another waits for it in the library ends that one at once.
func TestALossWhileRanksMeetEndsAllRanks(t *testing.T) {
	for _, where := range []string{"INIT", "CONNECT"} {
		text := scene(t, time.Minute, "ANNEAL_EMULATOR_NCCL_HANG_"+where+"=1", loseVariable+"=1")
		if strings.Count(text, "the card is lost") < 2 {
			t.Errorf("%s: %s", where, text)
		}
	}
}

// joined returns the errors of ranks that join with the cards of a list.
func joined(t *testing.T, cards ...int) []error {
	t.Setenv("ANNEAL_CUDA_PATH", emulator.Dir(t))
	list := make([]*cuda.Device, len(cards))
	for r := range cards {
		card, err := cuda.New(cards[r])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(card.Close)
		list[r] = card
	}
	t.Setenv("ANNEAL_CUDA_PATH", t.TempDir()) // without NCCL
	return commtest.Each(local.New(len(cards), local.Options{Timeout: time.Minute}), func(c comm.Comm) error {
		_, err := Join(c, list[c.Rank()], 0)
		return err
	})
}

func TestRanksOnOneCardAreRefused(t *testing.T) {
	for r, err := range joined(t, 0, 1, 0) {
		if err == nil || !strings.Contains(err.Error(), "ranks 0 and 2 have the same GPU") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestWithoutTheLibraryItIsSaidWhatToInstall(t *testing.T) {
	for _, err := range joined(t, 0, 1) {
		if err != nil && !strings.Contains(err.Error(), "pip install nvidia-nccl-cu12") { // the system may have it
			t.Error(err)
		}
	}
}

// Ranks that send other tensors than there is room for are told, also if they were set later.
func TestShapesThatDifferAreNoticed(t *testing.T) {
	t.Setenv("ANNEAL_CUDA_PATH", emulator.Dir(t))
	list := func(n int) [][]tensor.Tensor {
		one := []tensor.Tensor{*tensor.Of(make([]float32, n))}
		return [][]tensor.Tensor{one, one}
	}
	told := false
	for _, err := range commtest.Each(onCards(2, time.Minute), func(c comm.Comm) error {
		x := c.NewExchange("the activations", list(4), list(4))
		x.Set(list(4+c.Rank()), list(4))
		x.Start(2)
		if err := x.Wait(); err != nil {
			return err
		}
		x.Release()
		_, err := c.Share(nil)
		for range 100 { // the host may go on before it hears of it
			if err == nil {
				time.Sleep(20 * time.Millisecond)
				err = x.Sent()
			}
		}
		return err
	}) {
		var mismatch *comm.MismatchError
		told = told || errors.As(err, &mismatch) && strings.Contains(err.Error(), "the activations")
		if err == nil {
			t.Error("a rank does not end")
		}
	}
	if !told {
		t.Error("nobody is told")
	}
}
