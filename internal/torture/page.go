package torture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Paths of the report and its page, relative to the module's root.
const (
	ReportFile = "docs/reliability.jsonl"
	PageFile   = "docs/reliability.md"
)

const pageHead = `# Reliability

Tests break anneal on purpose: they kill it, damage its files, fill its disk and fail its system calls. This page lists each fault, how often it was tried, and what happened. It is generated from the
results of the commands below: do not edit it. The last section names the day and the machine. If a fault causes a silently wrong result,
a panic, or an exit code that [commands.md](commands.md) does not list, its test fails and the page gets no row.

- A kill comes at a random point of the CPU time that the command needs, up to three times in a row.
- A damaged file is read by a random command of those that use its directory: ` + "`eval`, `generate`, `resume`, `export`, `ckpt verify`,\n  `data verify`, `data export`" + `. The same answer means that the command does not need the damaged bytes, or used an older
  checkpoint with the same result.
- A full disk is a limit on the size of files, drawn at random between zero and the largest file that the command writes.
- System calls fail in a simulated file system; in a simulated power cut, everything that was not synced is lost.

Parsers of foreign files also have fuzz targets, which ` + "`.ci/fuzz`" + ` runs: any bytes are either read or refused, in bounded
memory.

`

const pageCommands = "```sh\n" + `go test ./... -run Torture                                # a few tries of each test
go test ./... -run Torture -torture=1h -timeout=0         # each package that has such tests takes an hour
rm docs/reliability.jsonl                                 # the numbers of this page
go test ./... -run Torture -torture=9m -timeout=0 -torture.report=docs/reliability.jsonl
go generate ./internal/torture
` + "```\n\n"

// ParseReport reads the lines of a report.
func ParseReport(text []byte) (records []Record, err error) {
	for line := range bytes.Lines(text) {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(records)+1, err)
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test))
	})
	return records, nil
}

// Page returns the page of a report.
func Page(records []Record) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead)
	b.WriteString(pageCommands)
	b.WriteString("| fault | tries | what happened | test |\n|---|---:|---|---|\n")
	for _, r := range records {
		for _, fault := range slices.Sorted(maps.Keys(r.Rows)) {
			tries := 0
			var list []string
			for _, outcome := range slices.Sorted(maps.Keys(r.Rows[fault])) {
				n := r.Rows[fault][outcome]
				tries += n
				list = append(list, fmt.Sprintf("%d × %s", n, outcome))
			}
			fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", fault, tries, strings.Join(list, "<br>"), r.Test)
		}
	}
	b.WriteString(faultTable())
	b.WriteString("\n## The runs behind these numbers\n\n| test | package | day | time | first seed | machine |\n" +
		"|---|---|---|---:|---:|---|\n")
	for _, r := range records {
		fmt.Fprintf(&b, "| %s | %s | %s | %d s | %d | %s |\n", r.Test, r.Package, r.Date, r.Seconds, r.Seed, r.Machine)
	}
	return b.Bytes()
}
