//go:build unix

package fileio

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const text = "what is written"

func write(path string) error {
	return Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

// put is write by means of Put, with a file made beside path.
func put(path string) error {
	dir, err := os.MkdirTemp("", "put-*") // path may be in /dev, where no file can be made
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := os.Create(filepath.Join(dir, "whole"))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.WriteString(f, text); err != nil {
		return err
	}
	return Put(f, path)
}

// Regular files are replaced, in one step, and links to them stay links.
func TestFilesAreReplacedThroughLinks(t *testing.T) {
	for name, lead := range map[string]func(dir string) (path, file string){
		"absent":  func(dir string) (string, string) { return dir + "/a", dir + "/a" },
		"regular": func(dir string) (string, string) { old(t, dir+"/a"); return dir + "/a", dir + "/a" },
		"link":    func(dir string) (string, string) { old(t, dir+"/a"); return link(t, "a", dir+"/l"), dir + "/a" },
		"dangling link": func(dir string) (string, string) {
			return link(t, "a", dir+"/l"), dir + "/a"
		},
		"chain of links": func(dir string) (string, string) {
			old(t, dir+"/far/a")
			link(t, filepath.Join(dir, "far", "m"), dir+"/l")
			link(t, "../n", dir+"/far/m")
			link(t, "far/a", dir+"/n")
			return dir + "/l", dir + "/far/a"
		},
		"link in a linked directory": func(dir string) (string, string) {
			old(t, dir+"/a") // not dir/far/a: ".." is the parent of the directory, not of the link to it
			link(t, "far", dir+"/d")
			return link(t, "../a", dir+"/far/l"), dir + "/a"
		},
		"path through a linked directory": func(dir string) (string, string) {
			link(t, dir, dir+"/far/up")
			link(t, "far/up/far", dir+"/d")
			return dir + "/d/../a", dir + "/a"
		},
	} {
		for how, write := range map[string]func(string) error{"Write": write, "Put": put} {
			dir := t.TempDir()
			if err := os.Mkdir(dir+"/far", 0o777); err != nil {
				t.Fatal(err)
			}
			path, file := lead(dir)
			before := links(dir)
			if err := Check(path); err != nil {
				t.Errorf("%s: Check: %v", name, err)
			}
			if err := write(path); err != nil {
				t.Errorf("%s: %s: %v", name, how, err)
			}
			if got, err := os.ReadFile(file); string(got) != text {
				t.Errorf("%s: %s: the file holds %q, %v", name, how, got, err)
			}
			if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %s: what is at the end is %v, %v", name, how, info, err)
			}
			if after := links(dir); after != before {
				t.Errorf("%s: %s: links were %s and are %s", name, how, before, after)
			}
			if left, _ := filepath.Glob(dir + "/.*"); len(left) != 0 {
				t.Errorf("%s: %s: %v are left", name, how, left)
			}
		}
	}
}

// A fault leaves the file that a link names as it was.
func TestAFaultLeavesALinkedFile(t *testing.T) {
	dir := t.TempDir()
	old(t, dir+"/a")
	path := link(t, "a", dir+"/l")
	fault := errors.New("fault")
	if err := Write(path, func(w io.Writer) error { io.WriteString(w, "ha"); return fault }); !errors.Is(err, fault) {
		t.Errorf("error %v, want %v", err, fault)
	}
	if got, _ := os.ReadFile(dir + "/a"); string(got) != "old" {
		t.Errorf("the file holds %q", got)
	}
}

func TestReplacedFilesKeepTheirPermissions(t *testing.T) {
	path := t.TempDir() + "/a"
	old(t, path)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("permissions %v, %v", info.Mode(), err)
	}
}

// A path that is neither a file nor a stream is refused and stays unchanged.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("unix", dir+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	paths := map[string]string{"a directory": dir, "a socket": dir + "/socket"}
	if unix.Mknod(dir+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(7, 200))) == nil { // as root
		paths["a block device"] = dir + "/disk"
	}
	for kind, path := range paths {
		before, _ := os.Lstat(path)
		for how, write := range map[string]func(string) error{"Write": write, "Put": put, "Check": Check} {
			for _, path := range []string{path, link(t, path, filepath.Join(t.TempDir(), "l"))} {
				var e *TargetError
				if err := write(path); !errors.As(err, &e) || e.Path != path || e.Kind != kind {
					t.Errorf("%s to %s: %v", how, kind, err)
				}
			}
		}
		if after, _ := os.Lstat(path); !os.SameFile(before, after) || before.Mode() != after.Mode() {
			t.Errorf("%s became %v", kind, after.Mode())
		}
	}
	loop := link(t, "l", dir+"/l")
	if err := write(loop); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
}

// Writing to a character device does not replace it; writing to a full one is an error.
func TestDevicesAreWrittenTo(t *testing.T) {
	dir := t.TempDir()
	null, full := device(t, "null", 3), device(t, "full", 7)
	for path, full := range map[string]bool{
		null: false, full: true, link(t, null, dir+"/l"): false, link(t, full, dir+"/m"): true,
	} {
		before, _ := os.Stat(path)
		for how, write := range map[string]func(string) error{"Write": write, "Put": put} {
			if err := write(path); full != errors.Is(err, syscall.ENOSPC) || !full && err != nil {
				t.Errorf("%s to %s: %v", how, path, err)
			}
		}
		if err := Check(path); err != nil {
			t.Errorf("Check of %s: %v", path, err)
		}
		if after, _ := os.Stat(path); !os.SameFile(before, after) || after.Mode()&os.ModeCharDevice == 0 {
			t.Errorf("%s became %v", path, after.Mode())
		}
	}
}

// device makes a device like /dev/NAME. A user who may not make one cannot replace the system's device either, so the
// test then uses that one.
func device(t *testing.T, name string, minor uint32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, minor))); err != nil {
		path = "/dev/" + name
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	f.Close()
	return path
}

func TestPipesAreWrittenTo(t *testing.T) {
	path := t.TempDir() + "/pipe"
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	for how, write := range map[string]func(string) error{"Write": write, "Put": put} {
		read := make(chan string)
		go func() {
			got, err := os.ReadFile(path)
			read <- string(got)
			if err != nil {
				t.Error(err)
			}
		}()
		if err := Check(path); err != nil {
			t.Error(err)
		}
		if err := write(path); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		if got := <-read; got != text {
			t.Errorf("%s: %q came through", how, got)
		}
	}
	if info, _ := os.Lstat(path); info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe became %v", info.Mode())
	}
}

// Standard output and other open files are written at their current position: after the existing content of a file to
// which they were redirected.
func TestOpenFilesAreWrittenToWhereTheyStand(t *testing.T) {
	path := t.TempDir() + "/redirected"
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("first ")
	names := []string{descriptorName("/dev/fd/", f)}
	if _, err := os.Stat("/proc/self/fd"); err == nil {
		names = append(names, descriptorName("/proc/self/fd/", f),
			link(t, descriptorName("/proc/self/fd/", f), t.TempDir()+"/l"))
	}
	stdout := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = stdout }()
	names = append(names, Standard, "/dev/stdout", "/dev/fd/1", link(t, "/dev/stdout", t.TempDir()+"/l"))
	want := "first "
	for _, name := range names {
		for how, write := range map[string]func(string) error{"Write": write, "Put": put} {
			if err := errors.Join(Check(name), write(name)); err != nil {
				t.Errorf("%s to %s: %v", how, name, err)
			}
			want += text
			if got, _ := os.ReadFile(path); string(got) != want {
				t.Fatalf("%s to %s: the file holds %d bytes, want %d", how, name, len(got), len(want))
			}
		}
	}
	if err := write("/dev/fd/999"); !errors.Is(err, syscall.EBADF) {
		t.Errorf("a file that is not open: %v", err)
	}
}

func descriptorName(dir string, f *os.File) string { return dir + strconv.Itoa(int(f.Fd())) }

func TestStandardOutputIsKnownByItsNames(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]bool{
		"-": true, "/dev/stdout": true, "/dev/fd/1": true, link(t, "/dev/stdout", dir+"/l"): true,
		"./-": false, "/dev/stderr": false, "/dev/null": false, dir + "/none": false, dir: false,
	} {
		if got := IsStdout(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestCheckFindsAMissingDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir + "/none/a", link(t, "none/a", dir+"/l")} {
		if err := Check(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestBesideIsWhereTheFileWillBe(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/far", 0o777); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir + "/a": dir + "/", link(t, "far/a", dir+"/l"): dir + "/far/", "/dev/null": "", "-": "", "a": ".",
	} {
		if got, err := Beside(path); err != nil || got != want {
			t.Errorf("beside %s: %q, %v, want %q", path, got, err, want)
		}
	}
}

func old(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) string {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// links lists the symbolic links below a directory.
func links(dir string) string {
	var b strings.Builder
	for _, d := range []string{dir, dir + "/far"} {
		entries, _ := os.ReadDir(d)
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(d, e.Name())); err == nil {
				b.WriteString(e.Name() + "→" + to + " ")
			}
		}
	}
	return b.String()
}
