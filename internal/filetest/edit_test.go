package filetest

import (
	"slices"
	"testing"
)

func TestEditsChangeAFileAsTheySay(t *testing.T) {
	good := []byte("0123456789")
	for _, c := range []struct{ edits, want string }{
		{"", "0123456789"},
		{string(Splice(2, 3, "abc")), "01abc56789"},
		{string(Splice(10, 0, "end")), "0123456789end"},
		{string(Splice(8, 1000, "")), "01234567"},
		{string(Splice(60000, 3, "far")), "0123456789far"},
		{string(slices.Concat(Splice(0, 10, ""), Splice(0, 0, "new"))), "new"},
		{"\x01\x00\x01\x00\xffcut", "0cut23456789"},
		{"\x01\x00\x01", "0123456789"},
	} {
		if got := string(Edit(t, good, []byte(c.edits))); got != c.want {
			t.Errorf("%q gives %q, want %q", c.edits, got, c.want)
		}
	}
	if string(good) != "0123456789" {
		t.Errorf("the file itself became %q", good)
	}
}
