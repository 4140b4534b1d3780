package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"anneal/checkpoint"
	"anneal/comm"
	"anneal/config"
	"anneal/corpus"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/train"
)

// Each kind of error has its code, however deep it is wrapped and whatever else the chain holds.
func TestErrorsHaveTheirExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("a defect"), exitInternal},
		{&usageError{"m", "h"}, exitUsage},
		{&config.Error{Problems: []config.Problem{{Message: "m"}}}, exitUsage},
		{fmt.Errorf("run: %w", config.Problem{Message: "m"}), exitUsage},
		{run.ErrExists, exitUsage},
		{asData(dataset.ErrExists), exitUsage},
		{asData(&tokenizer.OptionError{Err: errors.New("empty pattern")}), exitUsage},
		{run.ErrNoRun, exitUsage},
		{asData(errors.New("corrupt")), exitData},
		{asData(&fs.PathError{Err: syscall.ENOSPC}), exitResources},
		{&fs.PathError{Op: "open", Err: syscall.EISDIR}, exitUsage},
		{&fs.PathError{Op: "stat", Err: syscall.ENOTDIR}, exitUsage},
		{&fs.PathError{Op: "mkdir", Err: syscall.ENOENT}, exitUsage},
		{&fs.PathError{Op: "mkdir", Err: syscall.ENOSPC}, exitResources},
		{&fs.PathError{Op: "mkdir", Err: syscall.EACCES}, exitData},
		{&fs.PathError{Op: "mkdir", Err: syscall.EROFS}, exitData},
		{run.ErrOccupied, exitUsage},
		{prepare.ErrNoGoSource, exitData},
		{&incomplete{loss: new(corpus.LossError)}, exitData},
		{fs.ErrNotExist, exitData},
		{&run.DivergedError{}, exitDiverged},
		{&run.DivergedRunError{}, exitDiverged},
		{&train.CorruptionError{}, exitCorrupt},
		{&checkpoint.Fault{Err: fs.ErrNotExist}, exitCheckpoint},
		{checkpoint.ErrNone, exitCheckpoint},
		{checkpoint.ErrFuture, exitCheckpoint},
		{&train.MemoryError{}, exitResources},
		{syscall.ENOMEM, exitResources},
		{&checkpoint.LockedError{}, exitLocked},
		{&comm.LostError{Err: fs.ErrClosed}, exitStalled},
		{&comm.MismatchError{}, exitStalled},
		{&run.PanicError{}, exitStalled},
		{&run.UnfitError{Err: &train.MemoryError{}}, exitStalled},
		{&run.UnfitError{Err: config.Problem{Message: "m"}}, exitStalled},
		{&run.RankError{Code: exitCorrupt, Err: &comm.LostError{Err: fs.ErrClosed}}, exitCorrupt},
		{&run.RankError{Err: &comm.LostError{Err: fs.ErrClosed}}, exitStalled},
		{&stopped{}, exitStopped},
		{&fs.PathError{Op: "open", Err: syscall.EROFS}, exitData},
		{&os.LinkError{Op: "rename", Err: syscall.EPERM}, exitData},
		{&interrupted{syscall.SIGHUP}, exitHangup},
		{&interrupted{os.Interrupt}, exitInterrupt},
		{&interrupted{syscall.SIGTERM}, exitTerminate},
	} {
		if got := exitCode(fmt.Errorf("while testing: %w", c.err)); got != c.code {
			t.Errorf("%T %v: exit %d, want %d", c.err, c.err, got, c.code)
		}
	}
	if asData(nil) != nil {
		t.Error("no error became one")
	}
}

// If the process has too many files open, the error advises raising the limit instead of its usual remedy.
func TestTooManyOpenFilesAdviseTheLimit(t *testing.T) {
	err := asData(fmt.Errorf("shard a.bin: %w\n  rebuild the data with `anneal data build`",
		&fs.PathError{Op: "open", Path: "a.bin", Err: syscall.EMFILE}))
	if text := message(err); strings.Contains(text, "rebuild") ||
		!strings.Contains(text, "a.bin: too many open files") || !strings.Contains(text, "ulimit -n") {
		t.Errorf("it says %q", text)
	}
	if code := exitCode(err); code != exitResources {
		t.Errorf("exit %d, want %d", code, exitResources)
	}
}

// A user's mistake is never exit code 1, which is a defect of the program.
func TestMistakesOfUsersAreNoDefects(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir) // without a profile
	t.Setenv("HOME", dir)
	rows := filepath.Join(dir, "rows.csv")
	const head = "id,layers,hidden,heads,seq_len,accelerator,n_gpu,global_batch_seqs,step_time_s\n"
	for _, c := range []struct {
		args, rows string
		code       int
		says       string
	}{
		{"scaling run --budget 20m data.path=nowhere --dry-run", "", exitData, "no data set"},
		{"scaling run --budget 20m data.path=nowhere --out " + filepath.Join(dir, "study"), "", exitData,
			"no data set"},
		{"lab ablate ../../examples/ablation.yaml data.path=nowhere --with optimizer.name=lion --out " +
			filepath.Join(dir, "which"), "", exitData, "no data set"},
		{"bench plan demo", "", exitUsage, "anneal bench machine"},
		{"bench plan foo", "", exitUsage, `no shape is named "foo"`},
		{"bench plan --published --rows " + rows, "a,\"b", exitData, "parse error"},
		{"bench plan --published --rows " + rows, head, exitData, "no row has a shape and a figure"},
		{"bench plan --published --search --rows " + rows, head + "a,4,64,1,64,h100x,8,8,1\n", exitData, "h100x"},
		{"bench plan --published --rows " + rows, head + "a,4,64,1,64,h100-80gb,8,9,1\n", exitData,
			"published run a: a batch of 9 sequences"},
	} {
		if err := os.WriteFile(rows, []byte(c.rows), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := anneal(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("anneal %s: exit %d, want %d and %q: %s", c.args, code, c.code, c.says, errs)
		}
	}
}
