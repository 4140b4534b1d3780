package serve

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"anneal/internal/jsonlimit"
	"anneal/model"
	"anneal/use"
)

// completionRequest is the body of a request for completions. Fields that are nil were not given.
type completionRequest struct {
	Model       string          `json:"model"`
	Prompt      json.RawMessage `json:"prompt"`
	MaxTokens   whole           `json:"max_tokens"`
	Temperature *float64        `json:"temperature"`
	TopP        *float64        `json:"top_p"`
	N           whole           `json:"n"`
	Seed        whole           `json:"seed"`
	Stop        json.RawMessage `json:"stop"`
	Logprobs    whole           `json:"logprobs"`
	Echo        bool            `json:"echo"`
	Stream      bool            `json:"stream"`

	StreamOptions *struct {
		IncludeUsage       bool `json:"include_usage"`
		IncludeObfuscation bool `json:"include_obfuscation"` // refused
	} `json:"stream_options"`

	FrequencyPenalty *float64 `json:"frequency_penalty"`
	PresencePenalty  *float64 `json:"presence_penalty"`

	// These are extensions of vLLM.
	TopK              whole    `json:"top_k"`
	MinP              *float64 `json:"min_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
	IgnoreEOS         bool     `json:"ignore_eos"`
	AddSpecialTokens  *bool    `json:"add_special_tokens"`

	// These are refused unless they change nothing.
	BestOf    whole              `json:"best_of"`
	Suffix    string             `json:"suffix"`
	LogitBias map[string]float64 `json:"logit_bias"`
	User      string             `json:"user"`
}

// A whole is a whole number, which may be written with a fraction of zero, such as 4.0. Its value is nil if none was
// given.
type whole struct{ value *int }

// UnmarshalJSON implements json.Unmarshaler.
func (w *whole) UnmarshalJSON(text []byte) error {
	if digits, fraction, ok := bytes.Cut(text, []byte(".")); ok && len(bytes.Trim(fraction, "0")) == 0 {
		text = digits
	}
	return json.Unmarshal(text, &w.value)
}

// A prompt is a text that a completion continues.
type prompt struct {
	text string // as it was given, or the tokens' text
	ids  []int32
}

// readJSON reads the body of a request into v, within the limits of time, bytes and values.
func readJSON(w http.ResponseWriter, r *http.Request, v any) *apiError {
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(bodyTime))
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if big := new(http.MaxBytesError); errors.As(err, &big) {
		e := invalid("", "the body is larger than %d bytes", maxBody)
		e.status = http.StatusRequestEntityTooLarge
		return e
	}
	if err != nil {
		return invalid("", "the body cannot be read: %v", err)
	}
	control.SetReadDeadline(time.Time{})
	if err := (jsonlimit.Limits{Objects: 100, Values: maxBody / 2}).Check(text); err != nil {
		return invalid("", "the body has %v", err)
	}
	if key, has := strangeKey(text, reflect.TypeOf(v)); has {
		return invalid(key, "the key %q is not supported", key)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(v); err != nil {
		wrong := new(json.UnmarshalTypeError)
		if errors.As(err, &wrong) {
			if wrong.Field == "" {
				return invalid("", "the body is of the JSON type %s, not an object", wrong.Value)
			}
			return invalid(wrong.Field, "%s cannot be of the JSON type %s", wrong.Field, wrong.Value)
		}
		return invalid("", "the body is not a JSON object of this request: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("", "something follows the JSON object")
	}
	return nil
}

// strangeKey returns a key of a JSON object that a struct of type t, or a struct in it, does not have in the same
// letters; encoding/json would take it in any case.
func strangeKey(object []byte, t reflect.Type) (key string, has bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var values map[string]json.RawMessage
	own := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	if own || t.Kind() != reflect.Struct || json.Unmarshal(object, &values) != nil {
		return "", false
	}
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		known[t.Field(i).Tag.Get("json")] = t.Field(i).Type
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if known[key] == nil {
			return key, true
		}
		if inner, has := strangeKey(values[key], known[key]); has {
			return inner, true
		}
	}
	return "", false
}

// check returns an error that names an invalid parameter.
func (q *completionRequest) check() *apiError {
	n, logprobs := or(q.N.value, 1), or(q.Logprobs.value, 0)
	switch {
	case n < 1 || n > maxChoices:
		return invalid("n", "n = %d is not between 1 and %d", n, maxChoices)
	case or(q.MaxTokens.value, 0) < 0:
		return invalid("max_tokens", "max_tokens = %d is negative", *q.MaxTokens.value)
	case logprobs < 0 || logprobs > 20:
		return invalid("logprobs", "logprobs = %d is not between 0 and 20", logprobs)
	case or(q.BestOf.value, n) != n:
		return invalid("best_of", "best_of other than n is not supported")
	case q.Suffix != "":
		return invalid("suffix", "suffix is not supported: the model only continues texts")
	case slices.ContainsFunc(slices.Collect(maps.Values(q.LogitBias)), func(x float64) bool { return x != 0 }):
		return invalid("logit_bias", "logit_bias is not supported")
	case q.StreamOptions != nil && !q.Stream:
		return invalid("stream_options", "stream_options needs stream = true")
	case q.StreamOptions != nil && q.StreamOptions.IncludeObfuscation:
		return invalid("stream_options", "stream_options.include_obfuscation is not supported")
	}
	return nil
}

// sampling returns the settings of drawing tokens.
func (q *completionRequest) sampling() (model.Sampling, *apiError) {
	s := model.Sampling{
		Temperature: or(q.Temperature, 1), TopP: or(q.TopP, 1), TopK: or(q.TopK.value, 0), MinP: or(q.MinP, 0),
		Repetition: or(q.RepetitionPenalty, 1), Frequency: or(q.FrequencyPenalty, 0),
		Presence: or(q.PresencePenalty, 0),
	}
	if s.TopK == -1 { // as vLLM spells all
		s.TopK = 0
	}
	s, err := s.Given()
	if wrong := new(model.SamplingError); errors.As(err, &wrong) {
		key := strings.ReplaceAll(wrong.Name, "-", "_")
		return s, invalid(key, "%s = %s; try %s", key, wrong.Message, wrong.Try)
	}
	if q.Seed.value != nil {
		s.Seed = uint64(*q.Seed.value)
	} else {
		var random [8]byte
		rand.Read(random[:])
		s.Seed = binary.LittleEndian.Uint64(random[:])
	}
	return s, nil
}

// stops returns the texts at which a completion ends.
func (q *completionRequest) stops() ([]string, *apiError) {
	if len(q.Stop) == 0 || string(q.Stop) == "null" {
		return nil, nil
	}
	var one string
	var list []string
	if json.Unmarshal(q.Stop, &one) == nil {
		list = []string{one}
	} else if err := json.Unmarshal(q.Stop, &list); err != nil {
		return nil, invalid("stop", "stop is neither a text nor a list of texts")
	}
	if len(list) > 16 {
		return nil, invalid("stop", "stop has %d texts, more than 16", len(list))
	}
	if slices.Contains(list, "") {
		return nil, invalid("stop", "stop has an empty text, which is everywhere")
	}
	return list, nil
}

// prompts reads a text, texts, tokens or lists of tokens. After each prompt there must be room for max tokens.
func (q *completionRequest) prompts(r *use.Trained) ([]prompt, *apiError) {
	texts, lists, e := q.readPrompt()
	if e != nil {
		return nil, e
	}
	if n := (len(texts) + len(lists)) * or(q.N.value, 1); n < 1 || n > maxChoices {
		return nil, invalid("prompt", "the request has %d completions, not 1 to %d", n, maxChoices)
	}
	var list []prompt
	for _, text := range texts {
		ids, err := r.Encode(text, !or(q.AddSpecialTokens, true))
		if err != nil {
			return nil, invalid("prompt", "the prompt has no token; send at least one character")
		}
		list = append(list, prompt{text, ids})
	}
	for _, ids := range lists {
		if e := checkIDs("prompt", ids, r.Model.Config.Vocab); e != nil {
			return nil, e
		}
		list = append(list, prompt{textOf(r, ids), ids})
	}
	for _, p := range list {
		if q.maxTokens() > r.Context()-len(p.ids) { // their sum may overflow
			e := invalid("prompt", "the model's context is %d tokens, but the prompt has %d and max_tokens is %d",
				r.Context(), len(p.ids), q.maxTokens())
			e.code = "context_length_exceeded"
			return nil, e
		}
	}
	return list, nil
}

// checkLogprobs limits the log-probabilities of all choices, which are kept until they are sent.
func (q *completionRequest) checkLogprobs(prompts []prompt) *apiError {
	if q.Logprobs.value == nil {
		return nil
	}
	tokens := 0
	for _, p := range prompts {
		if tokens += q.maxTokens(); q.Echo {
			tokens += len(p.ids)
		}
	}
	if n := or(q.N.value, 1) * tokens * (1 + *q.Logprobs.value); n > maxLogprobs {
		return invalid("logprobs", "the request asks for %d log-probabilities, more than %d; "+
			"lower logprobs, max_tokens or n", n, maxLogprobs)
	}
	return nil
}

// readPrompt returns the texts, or the lists of token ids, of a prompt.
func (q *completionRequest) readPrompt() (texts []string, lists [][]int32, e *apiError) {
	var one string
	var ids []int32
	raw := q.Prompt
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil, invalid("prompt", "there is no prompt")
	}
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil, nil
	}
	var some []*string
	if json.Unmarshal(raw, &some) == nil && !slices.Contains(some, nil) {
		for _, text := range some {
			texts = append(texts, *text)
		}
		return texts, nil, nil
	}
	switch {
	case bytes.Contains(raw, []byte("null")): // which would be read as 0
	case json.Unmarshal(raw, &ids) == nil:
		return nil, [][]int32{ids}, nil
	case json.Unmarshal(raw, &lists) == nil:
		return nil, lists, nil
	}
	return nil, nil, invalid("prompt", "prompt is neither a text, texts, token ids nor lists of token ids")
}

func (q *completionRequest) maxTokens() int { return or(q.MaxTokens.value, 16) }

// checkIDs returns an error unless there are token ids below vocab.
func checkIDs(param string, ids []int32, vocab int) *apiError {
	if len(ids) == 0 {
		return invalid(param, "a list of token ids is empty")
	}
	for _, id := range ids {
		if id < 0 || int(id) >= vocab {
			return invalid(param, "token id %d is not between 0 and %d", id, vocab-1)
		}
	}
	return nil
}

// or returns *p, or otherwise if p is nil.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
