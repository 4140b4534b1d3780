package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A path in a file is relative to the file, one on the command line to the working directory. One that exists in the
// working directory only is found there, and said.
func TestRelativePaths(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"configs/near", "configs/both", "both", "here", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	for _, c := range []struct{ text, override, want, remark string }{
		{"path: near", "", "configs/near", ""},
		{"path: ../here", "", "here", ""},
		{"path: both", "", "configs/both", ""},
		{"path: here", "", "here", "write ../here"},
		{"path: nowhere", "", "configs/nowhere", ""},
		{"path: near", "data.path=near", "near", ""},
		{"path: near", "data.path=both", "both", ""},
		{"mix: [a=near, b=here]", "", "a=configs/near, b=here", "write ../here"},
		{"mix: [a=near]", "data.mix=a=both,b=near", "a=both, b=near", ""},
	} {
		file := filepath.Join("configs", "run.yaml")
		if err := os.WriteFile(file, []byte("data:\n  "+c.text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		var overrides []string
		if c.override != "" {
			overrides = []string{c.override}
		}
		cfg, err := Load(file, overrides)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		want := strings.ReplaceAll(c.want, "=", "="+root+"/")
		if !strings.Contains(want, "=") {
			want = root + "/" + want
		}
		if got := cfg.Data.Path + cfg.Data.Mix.String(); got != filepath.FromSlash(want) {
			t.Errorf("%s, %q: %s, want %s", c.text, c.override, got, want)
		}
		if said := strings.Join(cfg.Remarks(), "\n"); c.remark == "" && said != "" ||
			!strings.Contains(said, c.remark) {
			t.Errorf("%s, %q: said %q, want %q", c.text, c.override, said, c.remark)
		}
		t.Chdir(t.TempDir())
		again, err := parse(cfg.YAML(), filepath.Join(root, "runs", "config.yaml"), nil)
		if err != nil || again.Differences(cfg) != nil {
			t.Errorf("%s: read again elsewhere: %+v, %v; want %+v", c.text, again.Data, err, cfg.Data)
		}
		t.Chdir(root)
	}
}
