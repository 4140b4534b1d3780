package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A flag or a command that does not exist is named, with the flag, the config key or the command that is meant.
func TestUnknownWordsLeadToTheNearest(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"train c.yaml --thread 2", "`anneal train` has no flag --thread\n  did you mean --threads?"},
		{"train c.yaml --ot runs/x", "did you mean --out?"},
		{"train c.yaml --lr 3e-4", "it is a config key: write optimizer.lr=VALUE"},
		{"train c.yaml --batch-tokens 3", "it is a config key: write train.batch_tokens=VALUE"},
		{"train c.yaml --name x", "optimizer.name=VALUE or schedule.name=VALUE"},
		{"lr-find c.yaml --modle.dim 3", "try `anneal lr-find --help`"},
		{"lab ablate c.yaml --stpes 3", "is it a config key? write train.steps=VALUE"},
		{"eval run --dta d", "did you mean --data?"},
		{"eval run --lr 3", "try `anneal eval --help`"},
		{"demo --minutes -1", "needs a value, and -1 looks like a flag\n  if it is the value, write --minutes=-1"},
		{"--foo", "unknown flag --foo\n  try `anneal --help`"},
		{"generate run --temp 1", "did you mean --temperature?"},
		{"generate run --max-new-tokens 5", "did you mean --max-tokens?"},
		{"train c.yaml --output-dir d", "did you mean --out?"},
		{"train c.yaml --learning-rate 1e-3", "in the config, try optimizer.lr"},
		{"train --config c.yaml", "give it as an argument: anneal train CONFIG"},
		{"evaluate run", "anneal has no command evaluate\n  did you mean `anneal eval`?"},
		{"finetune run", "try anneal train CONFIG --init-from DIR"},
		{"data prepare text", "anneal has no command data prepare\n  try anneal data build"},
		{"lab ablat c.yaml", "did you mean `anneal lab ablate`?"},
		{"ls a b", "unexpected argument b"},
		{"watch run --port 99999", "--port: 99999 is not a port: they go to 65535"},
		{"serve run --port 99999", "--port: 99999 is not a port: they go to 65535"},
	} {
		if code, _, errs := anneal(strings.Fields(c.args)...); code != exitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("anneal %s: exit %d, %q does not hold %q", c.args, code, errs, c.says)
		}
	}
}

// A path whose bytes are not UTF-8 is refused: another path, with U+FFFD for them, would be used instead.
func TestArgumentsAreText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r \xff")
	for _, args := range [][]string{{"ls", dir}, {"train", "--out=" + dir, "--json"}} {
		code, out, errs := anneal(args...)
		if code != exitUsage || !strings.Contains(out+errs, "is not valid UTF-8") {
			t.Errorf("anneal %q: exit %d, %s%s", args, code, out, errs)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
		t.Errorf("it has written %v, %v", left, err)
	}
}

// Flags take numbers with multiples and times with units.
func TestFlagsTakeQuantities(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"attention show window:64 --len 1Ki", exitOK, "keys 0 … 1023"},
		{"attention show window:64 --len 1.5K", exitOK, "keys 0 … 1499"},
		{"attention show window:64 --len 1.5", exitUsage, `"1.5" is not a whole number, such as 2000, 2K or 64Ki`},
		{"demo --minutes 5days", exitUsage,
			`"5days" is not a duration, such as 90s, 30m or 1h30m, or a number of minutes`},
		{"bench step --seconds x", exitUsage, "or a number of seconds"},
		{"data curate p.yaml --memory 5x", exitUsage, "not an amount of memory, such as 512MiB"},
		{"data curate p.yaml --wait soon", exitUsage, "not a duration"},
	} {
		if code, out, errs := anneal(strings.Fields(c.args)...); code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("anneal %s: exit %d, want %d and %q\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
	}
	for text, want := range map[string]float64{"3": 3, "90s": 1.5, "1h30m": 90} {
		var m inMinutes
		if err := m.UnmarshalText([]byte(text)); err != nil || float64(m) != want {
			t.Errorf("%s: %v minutes, %v; want %v", text, m, err, want)
		}
	}
	for text, want := range map[string]float64{"3": 3, "0.2": 0.2, "2m": 120, "500ms": 0.5} {
		var s inSeconds
		if err := s.UnmarshalText([]byte(text)); err != nil || float64(s) != want {
			t.Errorf("%s: %v seconds, %v; want %v", text, s, err, want)
		}
	}
}

// A key is explained by the end of its name; several are listed.
func TestExplainFindsKeysByTheirEnd(t *testing.T) {
	for _, c := range []struct {
		key, says string
		keys      int
	}{
		{"lr", "optimizer.lr: Peak learning rate", 1}, {"warmup", "schedule.warmup: ", 1}, {"name", "", 2},
		{"lr_ratio", "", 5}, {"model.dim", "model.dim: ", 1}, {"groups", "", 11}, {"schedule", "", 10},
	} {
		code, out, errs := anneal("explain", c.key)
		if lines := strings.Count(out, "\n"); code != exitOK || !strings.Contains(out, c.says) ||
			c.keys > 1 && lines != c.keys {
			t.Errorf("explain %s: exit %d, want %q or %d keys\n%s%s", c.key, code, c.says, c.keys, out, errs)
		}
	}
	if code, _, errs := anneal("explain", "learning_rate"); code != exitUsage ||
		!strings.Contains(errs, "try optimizer.lr") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// What stands for the words of other programs exists here.
func TestWordsOfOtherProgramsLeadToCommands(t *testing.T) {
	for word, list := range commandsElsewhere {
		if code, _, _ := anneal(append(strings.Fields(word), "--help")...); code != exitUsage {
			t.Errorf("anneal %s is a command", word)
		}
		for command := range strings.SplitSeq(list, " or ") {
			command, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(command), "anneal "), " CONFIG")
			if code, _, errs := anneal(append(strings.Fields(command), "--help")...); code != exitOK {
				t.Errorf("%s leads to %s: exit %d, %s", word, command, code, errs)
			}
		}
	}
}

// A file that cannot be read is followed by what to give instead.
func TestFilesThatCannotBeReadHaveAWayOut(t *testing.T) {
	for args, want := range map[string]string{
		"scaling fit missing.csv": "no such file or directory\n  give the path of a CSV",
		"improve c.yaml --prompts /dev/null --verify x --out y": "give - in its place, and /dev/null as standard " +
			"input: - < /dev/null",
		"improve c.yaml --prompts - --verify x --out y": "standard input has no prompts",
		"serve run --key-file /dev/null":                "a file that holds the key, or set ANNEAL_API_KEY",
	} {
		if code, _, errs := anneal(strings.Fields(args)...); code != exitData || !strings.Contains(errs, want) {
			t.Errorf("anneal %s: exit %d, %q does not hold %q", args, code, errs, want)
		}
	}
}
