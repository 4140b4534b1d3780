package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"anneal/dash"
	"anneal/internal/units"
)

// runsArg names the directories of several runs.
type runsArg struct {
	Dirs []string `arg:"" name:"run" help:"Directories of runs. A directory that is not a run stands for all runs below it."`
}

// open watches the runs, and says which are left out.
func (a runsArg) open(s *session) (*dash.Watch, error) {
	w, err := dash.New(a.Dirs)
	if err == nil && w.Omitted() > 0 {
		s.warn(fmt.Sprintf("only the %d runs that changed last are shown, without %s: `anneal ls` lists all, and "+
			"each can be named", len(w.Dirs()), units.Count(w.Omitted(), "older one")))
	}
	return w, err
}

type watchCmd struct {
	runsArg
	Port   port   `default:"7070" help:"TCP port; 0: any free one."`
	Listen string `default:"127.0.0.1" placeholder:"ADDRESS" help:"IP address or name to listen on. If other machines can reach it, the printed address has a token, without which nothing is shown."`
	TTY    bool   `name:"tty" help:"Show the runs in this terminal instead of the browser."`
}

func (watchCmd) Help() string {
	return example("anneal watch runs/tiny", "anneal watch runs/base runs/muon", "anneal watch runs/tiny --tty",
		"anneal watch runs/tiny --json") +
		"\n\nShows loss, validation, gradients, learning rate, speed, memory, the time of a step, checkpoints, " +
		"ranks and alerts, of one run or of several beside each other with what differs in their configurations. " +
		"It only reads the directories of the runs, which may be training, here or on another machine with the " +
		"same file system." +
		"\n\nOn the page, ? lists the keys. In the terminal, q quits, n shows the next run, l a logarithmic loss, " +
		"x the next x axis. --json prints what is known now and ends."
}

func (c watchCmd) Run(s *session) error {
	if s.json && c.TTY {
		return &usageError{"--json and --tty cannot be combined", "try one of them"}
	}
	w, err := c.open(s)
	if err != nil {
		return err
	}
	if s.json {
		w.Read()
		return s.emit(w.View(time.Now()))
	}
	return s.untilSignal(func(ctx context.Context) error {
		if c.TTY {
			return s.watchTerminal(ctx, w)
		}
		return c.serve(ctx, s, w)
	})
}

// serve shows the runs to browsers until ctx ends.
func (c watchCmd) serve(ctx context.Context, s *session, w *dash.Watch) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Listen, strconv.Itoa(int(c.Port))))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return &usageError{fmt.Sprintf("port %d of %s is in use", c.Port, c.Listen),
			"try another --port, or --port 0 for any free one"}
	case err != nil:
		return &usageError{"cannot listen: " + err.Error(), "try another --listen or --port"}
	}
	server := &dash.Server{Watch: w}
	address := listener.Addr().(*net.TCPAddr)
	shown := c.Listen
	if address.IP.IsUnspecified() {
		shown, _ = os.Hostname()
	}
	url := "http://" + net.JoinHostPort(shown, strconv.Itoa(address.Port)) + "/"
	if !address.IP.IsLoopback() {
		server.Token = rand.Text()
		url += "#token=" + server.Token
	}
	server.Hosts = names(c.Listen)
	s.printf("watching %s at %s\n  Ctrl-C ends\n", strings.Join(c.Dirs, ", "), url)
	return server.Serve(ctx, listener)
}

// names returns the host names that a browser may use for a server that listens on an address, besides the address
// itself.
func names(listen string) []string {
	var list []string
	if host, err := os.Hostname(); err == nil {
		list = append(list, strings.ToLower(host))
	}
	if _, err := netip.ParseAddr(listen); err != nil {
		list = append(list, strings.ToLower(listen))
	}
	return list
}
