package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"anneal/internal/fileio"
	"anneal/internal/machine"
	"anneal/model"
	"anneal/serve"
	"anneal/use"
)

const maxSequences = 1 << 16

type serveCmd struct {
	runArg
	weightsFlag
	dtypeFlag
	Host      string        `default:"127.0.0.1" help:"Address to listen on. Any address but a loopback address needs a key."`
	Port      port          `default:"8080" help:"Port to listen on; 0: any free one."`
	KeyFile   string        `type:"path" placeholder:"FILE" help:"File with the key that requests must have. Default: ANNEAL_API_KEY."`
	AllowHost []string      `placeholder:"NAME" help:"Host name by which requests may address this server, besides localhost and IP addresses."`
	Name      string        `placeholder:"NAME" help:"Name of the model in requests. Default: the name of the directory."`
	Sequences count         `default:"8" help:"Texts that are continued at the same time; each has its own key-value cache."`
	Requests  count         `default:"64" help:"Requests that run or wait at the same time; further ones get status 429."`
	Timeout   time.Duration `default:"10m" help:"Longest time of a request."`
	Drain     time.Duration `default:"30s" help:"Time that open requests have to finish after SIGTERM."`
	guessFlag
	reachFlags
	deviceFlag
	threadsFlag
}

func (serveCmd) Help() string {
	return example("anneal serve runs/go",
		`curl localhost:8080/v1/completions -d '{"prompt": "func main", "max_tokens": 50}'`,
		"anneal serve runs/go --dtype q8_0",
		"anneal serve runs/go --port 0 --sequences 16 --json",
		"anneal serve runs/go --host 0.0.0.0 --key-file key.txt --allow-host models.example.org",
	) +
		"\n\nThe endpoints are those of OpenAI and vLLM: /v1/completions, /v1/models, /health, /tokenize," +
		" /detokenize, /tokenizer_info and /metrics. docs/serving.md describes them." +
		"\n\nRequests are batched, but each text is the same as if it were alone: the same request with the same" +
		" seed has the same answer, bit for bit, whatever else the server does." +
		"\n\nAfter SIGTERM or Ctrl-C, open requests may finish (--drain); then the command ends with exit code 0."
}

func (c serveCmd) Run(s *session) error {
	c.Eight = c.eight()
	key, err := c.key()
	if err != nil {
		return err
	}
	if key == "" && !loopback(c.Host) {
		return &usageError{fmt.Sprintf("--host %s can be reached from other machines, and there is no key", c.Host),
			"add --key-file FILE, or set ANNEAL_API_KEY"}
	}
	if err := c.limits(); err != nil {
		return err
	}
	if err := notImported(c.Dir); err != nil {
		return err
	}
	r, err := c.open(s, c.Dir, c.Device, c.Threads, c.reachFlags)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := c.room(r); err != nil {
		return err
	}
	server, err := serve.New(r, serve.Options{
		Model: c.name(), Sequences: int(c.Sequences), Requests: int(c.Requests), Timeout: c.Timeout, Drain: c.Drain,
		Key: key, Hosts: c.AllowHost, OneByOne: c.OneByOne,
	})
	if errors.Is(err, model.ErrNoCache) {
		return asData(fmt.Errorf("%s cannot be served: %w\n  use `anneal generate`", c.Dir, err))
	}
	if err != nil {
		return err
	}
	defer server.Close()
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
	if err != nil {
		return &usageError{fmt.Sprintf("cannot listen: %v", err), "try another --port, or 0 for any free one"}
	}
	return c.serve(s, r, server, listener)
}

// limits returns an error for a limit at which no request could be answered.
func (c serveCmd) limits() error {
	switch {
	case c.Sequences < 1 || c.Sequences > maxSequences:
		return &usageError{fmt.Sprintf("--sequences %d is not between 1 and %d", c.Sequences, maxSequences), "try 8"}
	case c.Requests < 1:
		return &usageError{"--requests 0: no request would be answered", "try 64"}
	case c.Timeout <= 0:
		return &usageError{fmt.Sprintf("--timeout %v is no time for a request", c.Timeout), "try 10m"}
	case c.Drain <= 0:
		return &usageError{fmt.Sprintf("--drain %v is no time for requests in hand", c.Drain), "try 30s, or 1ms"}
	}
	return nil
}

// room returns an error if the memory needed besides the model is not available.
func (c serveCmd) room(r *use.Trained) error {
	available := availableMemory()
	if c.Device != "cpu" {
		available = r.FreeMemory()
	}
	all, cache := r.SchedulerBytes(int(c.Sequences))
	what := fmt.Sprintf("keys and values of %d sequences", c.Sequences)
	return machine.Room(available,
		machine.Part{What: what, Bytes: cache, Flag: "--sequences"},
		machine.Part{What: "passes through the model", Bytes: all - cache})
}

// serve answers requests until a signal comes.
func (c serveCmd) serve(s *session, r *use.Trained, server *serve.Server, l net.Listener) error {
	start := time.Now()
	all, cache := server.Bytes()
	s.notef("%s, step %d · %s · %s beside the weights, keys and values of %d sequences %s of it", c.name(), r.Step,
		r.Numbers(), memorySize(int64(all)), c.Sequences, memorySize(int64(cache)))
	s.printf("http://%s/v1/completions\n", l.Addr())
	// Add a Go processor for the handlers to those of the computing threads, which were set when the model was opened.
	// Otherwise a handler waits until the scheduler preempts a computing thread, 10 ms for a text that takes 5 ms.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	err := s.untilSignal(func(ctx context.Context) error { return server.Serve(ctx, l) })
	if errors.Is(err, serve.ErrUnfinished) {
		s.warn(err.Error())
		err = nil
	}
	if err != nil {
		return err
	}
	return s.emit(map[string]any{
		"address": l.Addr().String(), "model": c.name(), "step": r.Step, "seconds": time.Since(start).Seconds(),
		"memory_bytes": all, "cache_bytes": cache, "damaged": faults(r.Skipped),
	})
}

// name is the model's name in requests.
func (c serveCmd) name() string {
	if c.Name != "" {
		return c.Name
	}
	if path, err := filepath.Abs(c.Dir); err == nil {
		return filepath.Base(path)
	}
	return c.Dir
}

// key returns the key that requests must have; "" for none.
func (c serveCmd) key() (string, error) {
	if c.KeyFile == "" {
		return os.Getenv("ANNEAL_API_KEY"), nil
	}
	text, err := fileio.ReadSmall(c.KeyFile, 4096)
	if err != nil {
		return "", asData(fmt.Errorf("%w\n  try the path of a file that holds the key, or set ANNEAL_API_KEY", err))
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", &usageError{"--key-file " + c.KeyFile + " is empty", "put a key of 16 or more random letters there"}
	}
	return key, nil
}

// loopback reports whether only this machine can reach an address.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// notImported returns an error for a directory in Hugging Face's format, which is not a run.
func notImported(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err != nil {
		return nil
	}
	return &usageError{dir + " is a model in Hugging Face's form, not a run",
		fmt.Sprintf("make a run of it with `%s --out RUN`", command("anneal", "import", dir))}
}
