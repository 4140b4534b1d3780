package curate

// LittleKept describes a pipeline that keeps little of its input, and the main reason.
type LittleKept struct {
	Documents, Bytes float64 // shares that are kept
	Rule             string  // the rule that drops the most documents
	Dropped          int     // documents that it drops
	Hint             string  // suggestion; "" if there is none
}

// littleKept is the share of kept documents or bytes below which the command warns. Published pipelines
// for the web keep more of extracted text before they compare documents.
const littleKept = 0.2

// LittleKept returns nil if the pipeline keeps at least a fifth of the documents and of the text, or has seen too few
// documents.
func (r *Report) LittleKept() *LittleKept {
	const few = 20
	l := &LittleKept{Documents: ratio(r.Kept, r.Documents), Bytes: float64(r.KeptBytes) / float64(max(r.Bytes, 1))}
	if r.Documents < few && r.Kept > 0 || r.Documents == 0 || l.Documents >= littleKept && l.Bytes >= littleKept {
		return nil
	}
	stage := ""
	for _, s := range r.Stages {
		for _, rule := range s.Rules {
			if rule.Documents > l.Dropped {
				stage, l.Rule, l.Dropped = s.Name, s.Name+"."+rule.Name, rule.Documents
			}
		}
	}
	if l.Dropped == 0 { // the text became shorter, but no document was dropped
		return nil
	}
	l.Hint = hints[stage]
	return l
}

// hints holds suggestions for the stage that drops the most.
var hints = func() map[string]string {
	notes := "for notes, documentation and manuals try examples/curate/notes.yaml"
	web := "this stage is for prose from the web; for source code try examples/curate/code.yaml,\n  " + notes
	m := map[string]string{"code": "this stage is for source code; " + notes}
	for _, name := range []string{"gopher_quality", "gopher_repetition", "c4", "c4_paragraphs", "fineweb"} {
		m[name] = web
	}
	return m
}()
