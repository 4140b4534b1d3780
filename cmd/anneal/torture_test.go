package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anneal/internal/filetest"
	"anneal/internal/torture"
)

// child returns a command that runs anneal, which is this test binary.
func child(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1")
	return cmd
}

// A job is a command that writes a directory.
type job struct {
	name string
	args func(out string) []string
	run  bool // it writes a run, whose files contain a random identity
}

// result identifies the output of a job: the hashes of weights and optimizer for a run, else the hash of all files
// except hidden ones.
func (w workshop) result(j job, out string) string {
	w.t.Helper()
	if j.run {
		w.object(exitOK, "ckpt", "verify", out)
		v := w.object(exitOK, "ckpt", "hash", out)
		return fmt.Sprint(v["weights_hash"], v["optimizer_hash"])
	}
	h := sha256.New()
	files := outputs(w.t, out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, ".") { // an unfinished file after a kill
			continue
		}
		fmt.Fprintf(h, "%q %d %s\n", name, len(files[name]), files[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// jobs are the commands that write directories, with the output and CPU time of each without faults.
type jobs struct {
	w    workshop
	list []job
	done map[string]whole
}

type whole struct {
	result string
	cpu    time.Duration
	bytes  int // of the largest file
}

func newJobs(t *testing.T) *jobs {
	w := sharedInput(t)
	made := newWorkshop(t)
	run, exported := made.path("run"), made.path("hf")
	made.object(exitOK, "train", made.path("run.yaml"), "--out", run)
	made.object(exitOK, "export", run, exported)
	return &jobs{w, []job{
		{"data curate", func(out string) []string {
			return []string{"data", "curate", w.path("p.yaml"), w.path("crawl"), "--split", "20kB", "--out", out}
		}, false},
		{"data dedup", func(out string) []string { return []string{"data", "dedup", w.path("crawl"), "--out", out} },
			false},
		{"data build", func(out string) []string {
			return []string{"data", "build", "--tokenizer", made.path("tok.json"), w.path("crawl"), "--out", out}
		}, false},
		{"data export", func(out string) []string {
			return []string{"data", "export", made.path("data"), out, "--to", "megatron"}
		}, false},
		{"tokenizer train", func(out string) []string {
			return []string{"tokenizer", "train", "--vocab", "400", w.path("crawl"), "--out",
				filepath.Join(out, "tok.json")}
		}, false},
		{"export", func(out string) []string { return []string{"export", run, out} }, false},
		{"import", func(out string) []string { return []string{"import", exported, "--out", out} }, true},
		{"ckpt average",
			func(out string) []string { return []string{"ckpt", "average", run, "--last", "2", "--out", out} }, true},
		{"train", func(out string) []string {
			return []string{"train", made.path("run.yaml"), "train.steps=60", "--out", out}
		}, true},
		{"branch", func(out string) []string {
			return []string{"branch", run, "--at", "10", "train.steps=60", "--out", out}
		}, true},
	}, map[string]whole{}}
}

// draw returns a random job and its result without faults.
func (js *jobs) draw(r *rand.Rand) (job, whole) {
	j := js.list[r.IntN(len(js.list))]
	done, ok := js.done[j.name]
	if !ok {
		out := js.out(j)
		cmd := child(js.w.t, j.args(out)...)
		if text, err := cmd.CombinedOutput(); err != nil {
			js.w.t.Fatalf("%s: %v\n%s", j.name, err, text)
		}
		done = whole{result: js.w.result(j, out), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
		for _, b := range filetest.Contents(js.w.t, out, "") {
			done.bytes = max(done.bytes, len(b))
		}
		js.done[j.name] = done
	}
	return j, done
}

// out returns the path of a job's output, in a new directory.
func (js *jobs) out(j job) string {
	dir, err := os.MkdirTemp(js.w.dir, "try")
	if err != nil {
		js.w.t.Fatal(err)
	}
	if j.name == "tokenizer train" {
		return dir
	}
	return filepath.Join(dir, "out")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// finish repeats the command or resumes the run, and compares the result.
func (js *jobs) finish(j job, want whole, out, what string) (outcome string) {
	t := js.w.t
	t.Helper()
	outcome = "the same command gives the same result"
	args := j.args(out)
	if _, err := os.Stat(filepath.Join(out, "config.yaml")); err == nil && (j.name == "train" || j.name == "branch") {
		args, outcome = []string{"resume", out}, "resumed, with the same bits at the end"
	}
	code, _, errs := anneal(args...)
	switch {
	case code == exitUsage, strings.Contains(errs, "holds files already"):
		outcome = "it was complete"
	case code != exitOK:
		t.Fatalf("%s of %s, then anneal %s: exit %d\n%s", what, j.name, strings.Join(args, " "), code, errs)
	}
	if _, err := os.Stat(filepath.Join(out, "config.yaml")); err != nil && j.run {
		t.Fatalf("%s of %s, then anneal %s (exit %d): no run\n%s", what, j.name, strings.Join(args, " "), code, errs)
	}
	if got := js.w.result(j, out); got != want.result {
		t.Fatalf("%s of %s, then anneal %s (exit %d): another result", what, j.name, strings.Join(args, " "), code)
	}
	if j.name == "tokenizer train" {
		out = filepath.Join(out, "tok.json")
	}
	for _, e := range must(os.ReadDir(filepath.Dir(out))) {
		if strings.HasPrefix(e.Name(), ".") {
			outcome += "; an unfinished hidden file stays"
		} else if e.Name() != filepath.Base(out) {
			t.Fatalf("%s of %s leaves %s", what, j.name, e.Name())
		}
	}
	os.RemoveAll(filepath.Dir(out))
	return outcome
}

// Every command that writes a directory, killed with SIGKILL at any instant and repeated, writes the same output as
// without a kill; a run is resumed and ends with the same bits.
func TestTortureKilledCommands(t *testing.T) {
	js := newJobs(t)
	torture.Run(t, 6, func(r *rand.Rand) (fault, outcome string) {
		j, want := js.draw(r)
		out := js.out(j)
		fault, outcome = "kill -9 of `anneal "+j.name+"`", "it ended before it was killed"
		for kills := 1 + r.IntN(3); kills > 0; kills-- {
			args := j.args(out)
			if _, err := os.Stat(filepath.Join(out, "config.yaml")); err == nil {
				if j.name != "train" && j.name != "branch" {
					break // the run was complete before the kill, and a second one is refused
				}
				args = []string{"resume", out}
			}
			if !torture.Kill(t, r, child(t, args...), want.cpu) {
				break
			}
			if _, err := os.Stat(out); err == nil && !j.run && j.name != "data curate" {
				break // a second command may refuse a directory that is complete
			}
		}
		return fault, js.finish(j, want, out, "a kill")
	})
}

// If files cannot grow, as on a full disk, every command fails with exit code 6; with enough room it then writes the
// same output as without the fault.
func TestTortureFullDisks(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	js := newJobs(t)
	torture.Run(t, 4, func(r *rand.Rand) (fault, outcome string) {
		j, want := js.draw(r)
		out := js.out(j)
		blocks := r.IntN(want.bytes/1024 + 1) // of 512 or 1,024 bytes, as the shell has it
		cmd := child(t, j.args(out)...)
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$0" "$@"`, blocks), cmd.Path},
			cmd.Args[1:]...)
		cmd.Path, _ = exec.LookPath("sh")
		text, _ := cmd.CombinedOutput()
		fault = "no room on the disk for `anneal " + j.name + "`"
		switch code := cmd.ProcessState.ExitCode(); code {
		case exitOK:
			return fault, "it fits: " + js.finish(j, want, out, "too little room")
		case exitResources:
			return fault, "exit code 6; with room " + js.finish(j, want, out, "a full disk")
		default:
			t.Fatalf("%s with files of at most %d blocks: exit %d\n%s", j.name, blocks, code, text)
			return "", ""
		}
	})
}

// A rewind that is killed at any instant has either not begun, or the next resume completes it.
func TestTortureKilledRewinds(t *testing.T) {
	w := newWorkshop(t)
	base := w.path("base")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", base, "checkpoint.keep=10")
	hash := func(dir string) string {
		w.object(exitOK, "ckpt", "verify", dir)
		return fmt.Sprint(w.object(exitOK, "ckpt", "hash", dir)["weights_hash"])
	}
	resume := func(dir string) string {
		w.object(exitOK, "resume", dir)
		return hash(dir)
	}
	unchanged := hash(base)
	cpu := time.Duration(0)
	torture.Run(t, 2, func(r *rand.Rand) (fault, outcome string) {
		to := 5 * r.IntN(4)
		args := func(dir string) []string {
			return []string{"rewind", dir, "--to", fmt.Sprint(to), "--skip", fmt.Sprintf("%d:%d", to+1+r.IntN(2), to+3)}
		}
		seed := r.Uint64()
		same := func(dir string) []string {
			*r = *rand.New(rand.NewPCG(seed, 0)) // the same arguments twice
			return args(dir)
		}
		whole, killed := w.copyOf(base), w.copyOf(base)
		first := child(t, same(whole)...)
		if text, err := first.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if cpu == 0 {
			cpu = first.ProcessState.UserTime() + first.ProcessState.SystemTime()
		}
		rewound := resume(whole)
		if rewound == unchanged {
			t.Fatalf("a rewind to step %d changes nothing", to)
		}
		torture.Kill(t, r, child(t, same(killed)...), cpu)
		fault = "kill -9 of `anneal rewind`"
		switch got := resume(killed); got {
		case unchanged:
			outcome = "as if it had not begun"
		case rewound:
			outcome = "completed, with the same bits at the end"
		default:
			t.Fatalf("rewind to step %d killed, then resumed: weights %.12s; never begun %.12s, completed %.12s",
				to, got, unchanged, rewound)
		}
		os.RemoveAll(filepath.Dir(whole))
		os.RemoveAll(filepath.Dir(killed))
		return fault, outcome
	})
}

// A reader is a command that reads a run or a data set. It returns its exit code, its answer, and its messages.
type reader struct {
	name string
	run  bool // it reads a run, not a data set
	data bool
	read func(w workshop, run, data, out string) (code int, answer, errs string)
}

// asking runs a command and returns values of its JSON as the answer.
func asking(keys []string, args ...string) (code int, answer, errs string) {
	code, out, errs := anneal(append(args, "--json")...)
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(out))
	if code == exitOK && d.Decode(&v) != nil {
		return code, "no JSON: " + out, errs
	}
	for _, k := range keys {
		if _, ok := v[k]; !ok && code == exitOK {
			panic("no " + k + " in " + out)
		}
		answer += fmt.Sprint(k, "=", v[k], " ")
	}
	return code, answer, errs
}

// writing runs a command and returns the files it writes as the answer.
func writing(w workshop, out string, args ...string) (code int, answer, errs string) {
	code, _, errs = anneal(args...)
	if code == exitOK {
		answer = w.result(job{}, out)
	}
	return code, answer, errs
}

var readers = []reader{
	{"eval", true, true, func(w workshop, run, data, out string) (int, string, string) {
		return asking([]string{"loss", "bits_per_byte", "tokens"}, "eval", run, "--data", data)
	}},
	{"generate", true, false, func(w workshop, run, data, out string) (int, string, string) {
		code, text, errs := anneal("generate", run, "--prompt", "func f", "--max-tokens", "12", "--temperature", "0")
		return code, text, errs
	}},
	{"resume", true, true, func(w workshop, run, data, out string) (int, string, string) {
		return asking([]string{"weights_hash", "optimizer_hash"}, "resume", run)
	}},
	{"export", true, false, func(w workshop, run, data, out string) (int, string, string) {
		return writing(w, out, "export", run, out)
	}},
	{"ckpt verify", true, false, func(w workshop, run, data, out string) (int, string, string) {
		return asking(nil, "ckpt", "verify", run)
	}},
	{"data verify", false, true, func(w workshop, run, data, out string) (int, string, string) {
		return asking([]string{"fingerprint", "train", "val"}, "data", "verify", data)
	}},
	{"data export", false, true, func(w workshop, run, data, out string) (int, string, string) {
		return writing(w, out, "data", "export", data, out, "--to", "llmc")
	}},
}

// damages are the ways to damage a file.
var damages = []struct {
	name   string
	change func(r *rand.Rand, b []byte) []byte
}{
	{"a bit is flipped", func(r *rand.Rand, b []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b }},
	{"a byte is changed", func(r *rand.Rand, b []byte) []byte { b[r.IntN(len(b))] ^= byte(1 + r.IntN(255)); return b }},
	{"512 bytes are zero", func(r *rand.Rand, b []byte) []byte {
		at := r.IntN(len(b))
		clear(b[at:min(at+512, len(b))])
		return b
	}},
	{"it is cut off", func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] }},
	{"it is empty", func(*rand.Rand, []byte) []byte { return nil }},
	{"bytes are appended", func(r *rand.Rand, b []byte) []byte { return append(b, make([]byte, 1+r.IntN(100))...) }},
	{"it is missing", nil},
}

// Commands that read a damaged file of a run or of its data either refuse it with a documented exit code, give the
// same answer as without the damage, or name the file. Verifying notices damage to any file with checksums.
func TestTortureDamagedFiles(t *testing.T) {
	w := newWorkshop(t)
	base := w.path("base")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", base)
	newest := only(t, filepath.Join(base, "checkpoints"), "step-00000020")
	if err := os.RemoveAll(filepath.Join(base, newest)); err != nil { // so that resume has something to do
		t.Fatal(err)
	}
	intact := map[string]string{}
	torture.Run(t, 30, func(r *rand.Rand) (fault, outcome string) {
		reader := readers[r.IntN(len(readers))]
		run, data := w.copyOf(base), w.path("data")
		answer := func() (int, string, string) {
			out, err := os.MkdirTemp(w.dir, "out")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(out)
			return reader.read(w, run, data, filepath.Join(out, "out"))
		}
		want, ok := intact[reader.name]
		if !ok {
			code, text, errs := answer()
			if code != exitOK {
				t.Fatalf("%s without damage: exit %d\n%s", reader.name, code, errs)
			}
			want = text
			intact[reader.name] = want
			os.RemoveAll(filepath.Dir(run))
			run = w.copyOf(base)
		}
		dir, kind := run, "a run"
		if !reader.run || reader.data && r.IntN(2) == 0 {
			dir, kind = data, "a data set"
		}
		files := slices.Sorted(maps.Keys(filetest.Contents(t, dir, "")))
		name := files[r.IntN(len(files))]
		path := filepath.Join(dir, filepath.FromSlash(name))
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damage := damages[r.IntN(len(damages))]
		if damage.change == nil || len(whole) == 0 {
			err = os.Remove(path)
		} else {
			damaged := whole
			for bytes.Equal(damaged, whole) { // clearing zeros is no damage
				damaged = damage.change(r, bytes.Clone(whole))
			}
			err = os.WriteFile(path, damaged, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(filepath.Dir(run))
		defer func() {
			if dir != data {
				return
			}
			if err := os.WriteFile(path, whole, 0o666); err != nil {
				t.Fatal(err)
			}
		}()
		code, got, errs := answer()
		where := fmt.Sprintf("%s in %s, then %s", name, damage.name, reader.name)
		switch {
		case slices.Contains([]int{exitUsage, exitData, exitCheckpoint, exitResources}, code):
			outcome = fmt.Sprintf("refused, exit code %d", code)
		case code != exitOK:
			t.Fatalf("%s: exit %d\n%s", where, code, errs)
		case strings.HasSuffix(reader.name, "verify") &&
			(strings.HasPrefix(name, "checkpoints/step-") || strings.HasSuffix(name, ".tokens")):
			t.Fatalf("%s: not noticed\n%s", where, errs)
		case got == want:
			outcome = "the same answer"
		case strings.Contains(errs, filepath.Base(name)):
			outcome = "another answer, and a message that names the file"
		default:
			t.Fatalf("%s: in silence another answer\n%.500s\nwithout the damage\n%.500s\n%s", where, got, want, errs)
		}
		return "a file of " + kind + ": " + damage.name, outcome
	})
}
