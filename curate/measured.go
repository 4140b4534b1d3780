package curate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"anneal/corpus"
)

// measured is the output of the first pass of an earlier run with `signals: true` and `texts: true`: the text of every
// document after the stages, and the measurements. The stages up to the first comparison are not run again; their
// bounds, which may have changed, are applied to the measurements. The result equals that of a new run, because no
// measurement and no change of a text depends on a bound. Any other change in these stages is an error.
type measured struct {
	dir     string
	from    *pass
	records []*record // by split
	left    []corpus.Reject
	journal *journal
}

func openMeasured(dir string, p *Pipeline) (*measured, error) {
	m := &measured{dir: dir, from: p.passes[0]}
	var head journalHead
	m.journal = newJournal(dir, head)
	for _, path := range m.journal.paths() {
		if h, _, ok := readHead(path); ok {
			head = h
		}
	}
	switch {
	case head.Journal == 0:
		return nil, fmt.Errorf("%s holds no signals\n"+
			"  name the --out of a curation with `signals: true` and `texts: true`", dir)
	case head.Journal != journalVersion:
		return nil, fmt.Errorf("%s was made by another version of anneal\n  curate again from the input", dir)
	case head.Measures != p.measures:
		return nil, fmt.Errorf("%s was measured with other stages or options; "+
			"only thresholds and the stages after the first dedup may differ\n  curate again from the input", dir)
	}
	m.journal.head = head
	m.journal.follow()
	gone := func(name string) bool {
		return !strings.HasPrefix(name, "texts/") && !strings.HasPrefix(name, "signals/") &&
			!strings.HasPrefix(name, rejectsDir+"/")
	}
	end, err := readEnding(dir)
	unfinished := err != nil
	for i, input := range end.Splits {
		e := m.journal.find(place{0, i}, input)
		if e == nil || !m.journal.sound(e, gone) {
			unfinished = true
			break
		}
		if _, ok := e.Files[m.from.beside("texts", i)]; !ok {
			return nil, fmt.Errorf("%s has signals but no texts\n  curate again with `texts: true`", dir)
		}
		m.records = append(m.records, e)
	}
	if unfinished {
		return nil, fmt.Errorf("%s is not complete\n  finish it first: give its command again", dir)
	}
	m.left = end.Listing
	return m, nil
}

func (m *measured) count() int               { return len(m.records) }
func (m *measured) listing() []corpus.Reject { return m.left }
func (m *measured) size(i int) int64         { return m.records[i].Files[m.from.beside("texts", i)].Bytes }
func (m *measured) identity(i int) string {
	e := m.records[i]
	return e.Files[m.from.beside("texts", i)].Sum + " " + e.Files[m.from.beside("signals", i)].Sum
}

func (m *measured) read(ctx context.Context, w *worker, i int) error {
	before, err := m.records[i].tally()
	if err != nil {
		return err
	}
	texts, err := openShard(m.dir, m.from.beside("texts", i))
	if err != nil {
		return err
	}
	defer texts.close()
	signals, err := openShard(m.dir, m.from.beside("signals", i))
	if err != nil {
		return err
	}
	defer signals.close()
	read := int64(0)
	for in, err := range texts.documents() {
		if err == nil {
			err = ctx.Err()
		}
		var line []byte
		if err == nil {
			line, err = signals.next()
		}
		if err == io.EOF {
			err = fmt.Errorf("%s: fewer signals than texts", signals.path)
		}
		if err == nil {
			err = w.judge(in, line)
		}
		if err != nil {
			return err
		}
		now := texts.read()
		w.progress(now - read)
		read = now
		if w.full() {
			break
		}
	}
	w.progress(texts.read() - read)
	w.tally.Input = before.Input
	return w.sameRejects(m.records[i], m.dir)
}

// judge applies the current bounds to the measurements of a document.
func (w *worker) judge(in item, line []byte) error {
	d, h := &w.doc, &w.past
	d.begin(in)
	d.SetText(in.Text)
	*h = history{changed: h.changed[:0]}
	key, err := h.parse(d, line)
	if err != nil {
		return err
	}
	if key != in.Key {
		return fmt.Errorf("the signals belong to document %s, not %s", key, in.Key)
	}
	signals, changed := d.Signals, h.changed
	for i, s := range w.pass.stages {
		v := Verdict{}
		for _, b := range s.bounds {
			name := s.name + "." + b.Name
			for len(signals) > 0 && signals[0].Name != name {
				signals = signals[1:]
			}
			if len(signals) == 0 {
				return fmt.Errorf("document %s has no signal %s", in.Key, name)
			}
			if !v.Drop && !b.holds(signals[0].Value) {
				v = Verdict{Drop: true, Rule: name, Value: signals[0].Value}
			}
		}
		if len(changed) > 0 && changed[0].stage == s.name {
			if !h.verdict.Drop && !v.Drop {
				w.tally.change(i, changed[0].cut)
			}
			changed = changed[1:]
		}
		if v.Drop && !h.verdict.Drop {
			h.verdict = v
			w.tally.drop(i, d, d.Text, h.bytes, v)
		}
	}
	return w.write()
}

// parse reads a line of appendSignals.
func (h *history) parse(d *Doc, line []byte) (key Key, err error) {
	l := lineParser{rest: line}
	l.take(`{"source":"`)
	l.until('"')
	l.take(`,"offset":`)
	l.number(',')
	key = l.key()
	l.take(`,"bytes":`)
	h.bytes = int(l.number(','))
	l.take(`"dropped_by":"`)
	l.until('"')
	l.take(`,"signals":{`)
	l.pairs(func(name string, value float64) { d.Add(name, value) })
	l.take(`,"changed":{`)
	l.pairs(func(name string, value float64) { h.changed = append(h.changed, change{name, int(value)}) })
	l.take("}\n")
	if l.bad {
		return key, fmt.Errorf("a line that holds no signals: %.60q", line)
	}
	return key, nil
}

// pairs reads names and numbers up to the closing brace.
func (l *lineParser) pairs(visit func(name string, value float64)) {
	for !l.bad && !bytes.HasPrefix(l.rest, []byte("}")) {
		l.take(`"`)
		name := string(l.until('"'))
		l.take(`:`)
		i := bytes.IndexAny(l.rest, ",}")
		if l.bad || i < 0 {
			l.bad = true
			return
		}
		value, err := strconv.ParseFloat(string(l.rest[:i]), 64)
		if l.bad = err != nil || math.IsNaN(value) || math.IsInf(value, 0); l.bad { // bounds cannot judge NaN
			return
		}
		visit(name, value)
		if l.rest = l.rest[i:]; l.rest[0] == ',' {
			l.rest = l.rest[1:]
		}
	}
	l.take("}")
}
