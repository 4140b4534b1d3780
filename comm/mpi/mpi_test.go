//go:build mpi && linux

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anneal/comm"
	"anneal/comm/commtest"
	"anneal/tensor"
)

// The tests start this binary again under every launcher of the machine; programVariable says which of programs it
// then is. MPI_LAUNCHERS lists further launchers, by path.
const (
	programVariable = "ANNEAL_MPI_TEST"
	resultsVariable = "ANNEAL_MPI_TEST_RESULTS" // a directory: launchers may lose what a rank prints before it ends
)

var programs = map[string]func(g Group) error{
	"exchange": exchange, "abort": abort, "timeout": timeout, "mismatch": mismatch, "signals": signals,
	"killed": killed,
	"short":  func(g Group) error { return lengths(g, 11) },
	"long":   func(g Group) error { return lengths(g, 9) },
}

func TestMain(m *testing.M) {
	program := os.Getenv(programVariable)
	if program == "" {
		os.Exit(m.Run())
	}
	g, err := Open(Options{Timeout: time.Minute})
	if err == nil {
		err = programs[program](g)
	}
	if err == nil {
		err = g.Close()
	}
	result(err)
	if err != nil {
		os.Exit(1)
	}
}

const passed = "passed"

// result says what became of this rank.
func result(err error) {
	text := passed
	if err != nil {
		text = err.Error()
	}
	path := filepath.Join(os.Getenv(resultsVariable), fmt.Sprint(os.Getpid()))
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		fmt.Println(err)
	}
}

// launchersHere returns the launchers of this machine, by the library that they belong to.
func launchersHere(t *testing.T) map[string]string {
	found := map[string]string{}
	names := append(strings.Fields(os.Getenv("MPI_LAUNCHERS")), "mpirun.openmpi", "mpirun.mpich", "mpirun", "mpiexec")
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.Command(path, "--version").CombinedOutput()
		if err != nil {
			t.Errorf("%s --version: %v", path, err)
			continue
		}
		text := strings.Join(strings.Fields(string(out)), " ")
		for _, kind := range []string{"Open MPI", "Open-MPI", "Intel", "HYDRA"} {
			if _, again := found[text]; strings.Contains(text, kind) && !again {
				found[text] = path
				break
			}
		}
	}
	if len(found) == 0 {
		t.Skip("no MPI here: install openmpi-bin or mpich, or name mpirun in MPI_LAUNCHERS")
	}
	return found
}

// launch runs a program on n ranks. It returns what became of each, and the output of all and how the launcher ended.
func launch(t *testing.T, mpirun, program string, n int, env ...string) (results []string, out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"-n", fmt.Sprint(n)}
	version, _ := exec.Command(mpirun, "--version").CombinedOutput()
	if bytes.Contains(version, []byte("Open")) {
		args = append(args, "--oversubscribe", "--bind-to", "none")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, mpirun, append(args, exe)...)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), programVariable+"="+program, resultsVariable+"="+dir,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PRTE_ALLOW_RUN_AS_ROOT=1",
		"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	cmd.Env = append(cmd.Env, env...)
	cmd.WaitDelay = time.Second
	text, err := cmd.CombinedOutput()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		result, fault := os.ReadFile(f)
		if fault != nil {
			t.Error(fault)
		}
		results = append(results, string(result))
	}
	return results, string(text), err
}

// everywhere runs a program with every library and number of ranks, and checks that all ranks pass, and that the
// launcher says so where they close the group.
func everywhere(t *testing.T, program string, closes bool, sizes ...int) {
	for version, mpirun := range launchersHere(t) {
		for _, library := range librariesOf(mpirun) {
			for _, n := range sizes {
				t.Run(fmt.Sprintf("%.40s/%s/%d", version, filepath.Base(library), n), func(t *testing.T) {
					results, out, err := launch(t, mpirun, program, n, "ANNEAL_MPI="+library)
					want := slices.Repeat([]string{passed}, n)
					if !slices.Equal(results, want) || closes && err != nil {
						t.Errorf("%s: %q (%v)\n%s", mpirun, results, err, out)
					}
				})
			}
		}
	}
}

// librariesOf returns the values of ANNEAL_MPI to try with a launcher: the default, and the library with the standard's
// own ABI if there is one.
func librariesOf(mpirun string) []string {
	path, _ := filepath.EvalSymlinks(mpirun)
	standard, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(path)), "lib", "libmpi_abi.so.1"))
	return append([]string{""}, standard...)
}

func TestRanksExchange(t *testing.T) { everywhere(t, "exchange", true, 1, 2, 4) }

// exchange makes the calls of the suite that every transport passes, with tensors cut into many messages.
func exchange(g Group) error {
	most = 1000 // bytes
	if err := commtest.Program(g); err != nil {
		return err
	}
	if err := commtest.Program(commtest.Strict(g)); err != nil {
		return err
	}
	if err := commtest.Ahead(g); err != nil {
		return err
	}
	return commtest.Allocations(g)
}

// lists returns one tensor of n elements for every rank.
func lists(ranks, n int) [][]tensor.Tensor {
	all := make([][]tensor.Tensor, ranks)
	for r := range all {
		all[r] = []tensor.Tensor{*tensor.Of(make([]float32, n))}
	}
	return all
}

func TestAbortReachesEverybody(t *testing.T) { everywhere(t, "abort", false, 2, 4) }

// abort checks that all ranks that wait learn who ended the group, and why.
func abort(g Group) error {
	if last := g.Size() - 1; g.Rank() == last {
		time.Sleep(100 * time.Millisecond)
		g.Abort(errors.New("out of luck"))
	}
	start := time.Now()
	_, err := g.Share(nil)
	var lost *comm.LostError
	if !errors.As(err, &lost) || lost.Rank != g.Size()-1 || !strings.Contains(err.Error(), "out of luck") {
		return fmt.Errorf("Share after an abort: %v", err)
	}
	if took := time.Since(start); took > 3*time.Second {
		return fmt.Errorf("the abort was noticed after %v", took)
	}
	if _, again := g.Share(nil); again == nil {
		return errors.New("a later call works")
	}
	return leave()
}

// leave ends a rank of a group that has ended, when the others have had the time to do the same: it does not close MPI.
func leave() error {
	result(nil)
	time.Sleep(time.Second)
	os.Exit(0)
	return nil
}

func TestDeadlineNamesTheRank(t *testing.T) { everywhere(t, "timeout", false, 2, 4) }

// timeout checks that a rank that does not come is named.
func timeout(g Group) error {
	g.SetTimeout(500 * time.Millisecond)
	transfer := g.NewExchange("the last transfer", lists(g.Size(), 10), lists(g.Size(), 10))
	if g.Rank() == 1 {
		return leave()
	}
	transfer.Start(g.Size())
	err := transfer.Wait()
	var lost *comm.LostError
	if !errors.As(err, &lost) || lost.Rank != 1 || lost.At != "the last transfer" || lost.Host == "" {
		return fmt.Errorf("Wait for a rank that does not come: %v", err)
	}
	return leave()
}

func TestDifferentProgramsAreNoticed(t *testing.T) { everywhere(t, "mismatch", false, 2) }

// mismatch checks that ranks that send what has no room are told.
func mismatch(g Group) error {
	transfer := g.NewExchange("gradients", lists(2, 10+g.Rank()), lists(2, 10))
	transfer.Start(2)
	err := transfer.Wait()
	var mismatch *comm.MismatchError
	var lost *comm.LostError
	if !errors.As(err, &mismatch) && !errors.As(err, &lost) || !strings.Contains(err.Error(), "11 of f32") {
		return fmt.Errorf("different shapes: %v", err)
	}
	return leave()
}

func TestLengthsThatDifferAreNoticed(t *testing.T) {
	everywhere(t, "short", false, 2)
	everywhere(t, "long", false, 2)
}

// lengths checks that messages that do not fill their room, or are longer, are noticed, also if they were set later.
func lengths(g Group, room int) error {
	transfer := g.NewExchange("activations", lists(2, 10), lists(2, 10))
	transfer.Set(lists(2, 10), lists(2, room))
	transfer.Start(2)
	if err := transfer.Wait(); err == nil || room > 10 && !strings.Contains(err.Error(), "sends 40") {
		return fmt.Errorf("a message of 10 elements in room for %d: %v", room, err)
	}
	return leave()
}

func TestSignalsAreThoseOfGo(t *testing.T) { everywhere(t, "signals", true, 2) }

// signals checks that the library's handlers do no harm: a signal is delivered, and a nil dereference is a panic.
func signals(g Group) error {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGUSR1)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 3 {
		// It arrives while this goroutine runs: its stack is no place for a handler of the library.
		pid, thread := uintptr(os.Getpid()), uintptr(unix.Gettid())
		if _, _, err := unix.RawSyscall(unix.SYS_TGKILL, pid, thread, uintptr(syscall.SIGUSR1)); err != 0 {
			return err
		}
		select {
		case <-heard:
		case <-time.After(5 * time.Second):
			return errors.New("SIGUSR1 was not delivered")
		}
	}
	if err := dereference(nil); err == nil {
		return errors.New("a nil dereference did not panic")
	}
	for _, name := range []string{"SIGTERM", "SIGINT"} {
		if slices.Contains(g.Info().Signals, name) {
			fmt.Println("the library had taken", name)
		}
	}
	return nil
}

func dereference(p *int) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	*p = 1
	return nil
}

// The launcher ends everybody when a rank is killed.
func TestKilledRankEndsAll(t *testing.T) {
	for version, mpirun := range launchersHere(t) {
		t.Run(fmt.Sprintf("%.40s", version), func(t *testing.T) {
			start := time.Now()
			results, out, err := launch(t, mpirun, "killed", 4)
			if took := time.Since(start); err == nil || took > 20*time.Second || slices.Contains(results, passed) {
				t.Errorf("%s: %q (%v) after %v\n%s", mpirun, results, err, took, out)
			}
		})
	}
}

func killed(g Group) error {
	if g.Rank() == 2 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	_, err := g.Share(nil)
	return err
}

// A launcher whose library is another one would start ranks that do not see each other.
func TestLibraryOfAnotherLauncherIsRefused(t *testing.T) {
	for version, mpirun := range launchersHere(t) {
		if !strings.Contains(version, "Open") {
			continue
		}
		library := "libmpich.so.12"
		found, _ := filepath.Glob("/usr/lib/*/" + library)
		if len(found) == 0 {
			t.Skip("needs Open MPI and MPICH on one machine")
		}
		results, out, err := launch(t, mpirun, "exchange", 2, "ANNEAL_MPI="+found[0])
		if !strings.Contains(strings.Join(results, "\n"), "it belongs to another MPI") {
			t.Errorf("%s with %s: %q (%v)\n%s", mpirun, found[0], results, err, out)
		}
	}
}
