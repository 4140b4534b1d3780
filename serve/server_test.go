package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/model"
	"anneal/prepare"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/use"
)

// trained returns a small model of a run, shared by all tests.
var trained = sync.OnceValues(func() (*use.Trained, error) {
	dir := filepath.Join(directory, "data")
	tok, err := tokenizer.Train(context.Background(), tokenizer.TrainOptions{VocabSize: 320}, documents)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "tokenizer.json")
	o := dataset.BuildOptions{
		Dir: dir, Tokenizer: prepare.DatasetTokenizer(tok, path), ValFraction: 0.1,
		NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
	}
	if _, err := dataset.Build(context.Background(), o, documents); err != nil {
		return nil, err
	}
	if err := tok.Save(path); err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.Data.Path, cfg.Precision = dir, "fp32"
	cfg.Model.Layers, cfg.Model.Dim, cfg.Model.Heads, cfg.Model.Context = 2, 32, 2, 64
	cfg.Train.Steps, cfg.Train.BatchTokens, cfg.Schedule.Warmup, cfg.Optimizer.LR = 20, 256, 1, 3e-3
	cfg.Resolve()
	options := run.Options{Config: cfg, Dir: filepath.Join(directory, "run")}
	if _, err := run.Run(context.Background(), options); err != nil {
		return nil, err
	}
	return use.Open(options.Dir, 2)
})

// alone returns the same model on a device of its own, for what a server is compared with.
var alone = sync.OnceValues(func() (*use.Trained, error) {
	if _, err := trained(); err != nil {
		return nil, err
	}
	return use.Open(filepath.Join(directory, "run"), 1)
})

var documents iter.Seq2[[]byte, error] = func(yield func([]byte, error) bool) {
	for i := range 200 {
		if !yield(fmt.Appendf(nil, "the sum of %d and é %d is %d\n", i, 3*i, 4*i), nil) {
			return
		}
	}
}

func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	r, err := trained()
	if err != nil {
		t.Fatal(err)
	}
	o.Model = cmp.Or(o.Model, "m")
	s, err := New(r, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// send answers a request as a server on this machine does.
func send(s *Server, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost:8080"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// answer is a whole answer of /v1/completions.
type answer struct {
	Choices []struct {
		Index    int
		Text     string
		Logprobs *lists
		Reason   string `json:"finish_reason"`
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
	Error struct{ Message, Type, Param, Code string }
}

// UnmarshalJSON reads an object in its order.
func (l *likely) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, err := d.Token()
	for err == nil && d.More() {
		var x wordLogprob
		key, _ := d.Token()
		x.word = key.(string)
		err = d.Decode(&x.logprob)
		*l = append(*l, x)
	}
	return err
}

// of returns the log-probability of a word.
func (l likely) of(word string) float64 {
	for _, x := range l {
		if x.word == word {
			return x.logprob
		}
	}
	return math.NaN()
}

func complete(t testing.TB, s *Server, body string) (a answer) {
	t.Helper()
	w := send(s, "POST", "/v1/completions", body)
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: status %d, %s", body, w.Code, w.Body)
	}
	return a
}

// The text of a request is what `anneal generate` makes of the prompt, however many others are answered beside it.
func TestACompletionIsThatOfGenerateWhateverIsBesideIt(t *testing.T) {
	s := newServer(t, Options{Sequences: 3})
	var mu sync.Mutex // alone is for one at a time
	var wait sync.WaitGroup
	for i := range 12 {
		wait.Go(func() {
			prompt := fmt.Sprintf("the sum of %d", i)
			o := use.GenerateOptions{Prompt: prompt, MaxTokens: 5 + i, Sampling: model.Sampling{
				Temperature: 0.9, TopP: 0.95, TopK: 50, MinP: 0.01, Repetition: 1.1, Seed: uint64(i),
			}}
			got := complete(t, s, fmt.Sprintf(`{"model":"m","prompt":%q,"max_tokens":%d,"temperature":0.9,"top_p":0.95,
				"top_k":50,"min_p":0.01,"repetition_penalty":1.1,"seed":%d}`, prompt, o.MaxTokens, i))
			mu.Lock()
			defer mu.Unlock()
			var want strings.Builder
			r, err := alone()
			if err != nil {
				t.Error(err)
				return
			}
			done, err := r.Generate(t.Context(), o, func(text string) { want.WriteString(text) })
			if err != nil || got.Choices[0].Text != want.String() || got.Usage.Prompt != len(done.PromptIDs) {
				t.Errorf("%q: %+v, generate says %q, %v", prompt, got, want.String(), err)
			}
		})
	}
	wait.Wait()
}

// The log-probabilities of a prompt are minus the losses of its tokens, and exponentials of those at a place sum to 1.
func TestEchoedLogprobsAreThoseOfTheModel(t *testing.T) {
	s := newServer(t, Options{})
	prompts := []string{"the sum of 7 and é", "is"}
	a := complete(t, s, fmt.Sprintf(
		`{"prompt":[%q,%q],"max_tokens":1,"temperature":0,"logprobs":2,"echo":true}`, prompts[0], prompts[1]))
	r, err := alone()
	if err != nil {
		t.Fatal(err)
	}
	generator, err := model.NewGenerator(r.Model, r.Policy, mustCPU(t))
	if err != nil {
		t.Fatal(err)
	}
	defer generator.Close()
	for _, c := range a.Choices {
		ids, err := r.Encode(prompts[c.Index], false)
		if err != nil || len(ids)+1 != len(c.Logprobs.Tokens) || c.Logprobs.Logprobs[0] != nil {
			t.Fatalf("%d tokens and %+v: %v", len(ids), c.Logprobs, err)
		}
		for i := 1; i < len(ids); i++ {
			z := generator.Logits(ids[:i])
			want, sum := z.Float64(int(ids[i])), 0.0
			for k := range z.Len() {
				sum += math.Exp(z.Float64(k))
			}
			want -= math.Log(sum)
			got := *c.Logprobs.Logprobs[i]
			if math.Abs(got-want) > 1e-9 || c.Logprobs.Top[i].of(c.Logprobs.Tokens[i]) != got {
				t.Errorf("token %d of %q: %v (%v), want %v", i, c.Text, got, c.Logprobs.Top[i], want)
			}
		}
		last := len(c.Logprobs.Tokens) - 1
		if top := c.Logprobs.Top[last]; top[0].word != c.Logprobs.Tokens[last] ||
			top[0].logprob != *c.Logprobs.Logprobs[last] || len(top) != 2 {
			t.Errorf("a greedy token is not the most likely one: %v of %v", *c.Logprobs.Logprobs[last], top)
		}
	}
}

// A stream has the text, the log-probabilities and the usage of the whole answer, and ends with [DONE].
func TestAStreamIsTheWholeAnswerInPieces(t *testing.T) {
	s := newServer(t, Options{})
	const body = `{"prompt":"the","max_tokens":12,"seed":4,"n":3,"logprobs":1,"stop":["zzz","7"]%s}`
	whole := complete(t, s, fmt.Sprintf(body, ""))
	w := send(s, "POST", "/v1/completions",
		fmt.Sprintf(body, `,"stream":true,"stream_options":{"include_usage":true}`))
	events := strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n")
	if last := events[len(events)-1]; last != "data: [DONE]" {
		t.Fatalf("the last event is %q", last)
	}
	texts, tokens, reasons := make([]string, 3), make([][]string, 3), make([]string, 3)
	var usage answer
	for _, e := range events[:len(events)-1] {
		var a answer
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &a); err != nil {
			t.Fatalf("%q: %v", e, err)
		}
		for _, c := range a.Choices {
			texts[c.Index] += c.Text
			reasons[c.Index] += c.Reason
			if c.Logprobs != nil {
				tokens[c.Index] = append(tokens[c.Index], c.Logprobs.Tokens...)
			}
		}
		usage = a
	}
	for i, c := range whole.Choices {
		if texts[i] != c.Text || reasons[i] != c.Reason || !slices.Equal(tokens[i], c.Logprobs.Tokens) {
			t.Errorf("choice %d: streamed %q %q %q, whole %+v", i, texts[i], reasons[i], tokens[i], c)
		}
	}
	if usage.Usage != whole.Usage || whole.Usage.Completion == 0 {
		t.Errorf("usage %+v, want %+v", usage.Usage, whole.Usage)
	}
	if texts[0] == texts[1] && texts[1] == texts[2] {
		t.Error("three choices are the same text")
	}
}

// Scoring alone makes no token.
func TestNothingIsMadeOfNoTokens(t *testing.T) {
	a := complete(t, newServer(t, Options{}), `{"prompt":[5,6,7],"max_tokens":0,"logprobs":0,"echo":true}`)
	if c := a.Choices[0]; len(c.Logprobs.Logprobs) != 3 || a.Usage.Completion != 0 || c.Reason != "length" {
		t.Errorf("%+v", a)
	}
}

// What is not possible is refused by its name.
func TestWhatIsNotPossibleIsRefusedByName(t *testing.T) {
	s := newServer(t, Options{})
	for body, want := range map[string]struct {
		status int
		param  string
	}{
		`{`:                                     {400, ""},
		`{"prompt":"a"} {}`:                     {400, ""},
		`{"prompt":"a"}]`:                       {400, ""},
		`{"prompt":"a"}}`:                       {400, ""},
		`{"prompt":"a","colour":1}`:             {400, "colour"},
		`{"max_tokens":1}`:                      {400, "prompt"},
		`{"prompt":{}}`:                         {400, "prompt"},
		`{"prompt":[]}`:                         {400, "prompt"},
		`{"prompt":[[]]}`:                       {400, "prompt"},
		`{"prompt":[null]}`:                     {400, "prompt"},
		`{"prompt":[1,99999]}`:                  {400, "prompt"},
		`{"prompt":[-1]}`:                       {400, "prompt"},
		`{"prompt":"a","max_tokens":9999}`:      {400, "prompt"},
		`{"prompt":"a","max_tokens":-1}`:        {400, "max_tokens"},
		`{"prompt":"a","max_tokens":"1"}`:       {400, "max_tokens"},
		`{"prompt":"a","temperature":-1}`:       {400, "temperature"},
		`{"prompt":"a","top_p":2}`:              {400, "top_p"},
		`{"prompt":"a","repetition_penalty":0}`: {400, "repetition_penalty"},
		`[]`:                                    {400, ""},
		`{"prompt":"a","max_tokens":9223372036854775807}`:                            {400, "prompt"},
		`{"prompt":"a","repetition_penalty":5e-324}`:                                 {400, "repetition_penalty"},
		`{"prompt":"a","frequency_penalty":-1e308}`:                                  {400, "frequency_penalty"},
		`{"prompt":"a","presence_penalty":101}`:                                      {400, "presence_penalty"},
		`{"prompt":"a","n":0}`:                                                       {400, "n"},
		`{"prompt":"a","n":99999}`:                                                   {400, "n"},
		`{"prompt":"a","stop":""}`:                                                   {400, "stop"},
		`{"prompt":"a","stop":3}`:                                                    {400, "stop"},
		`{"prompt":"a","logprobs":21}`:                                               {400, "logprobs"},
		`{"prompt":"a","logit_bias":{"3":1}}`:                                        {400, "logit_bias"},
		`{"prompt":"a","suffix":"b"}`:                                                {400, "suffix"},
		`{"prompt":"a","best_of":3}`:                                                 {400, "best_of"},
		`{"prompt":"a","max_tokens":4.5}`:                                            {400, "max_tokens"},
		`{"prompt":"a","max_tokens":"4.0"}`:                                          {400, "max_tokens"},
		`{"prompt":"a","logit_bias":[]}`:                                             {400, "logit_bias"},
		`{"prompt":"a","stream":true,"stream_options":{"include_obfuscation":true}}`: {400, "stream_options"},
		`{"prompt":"a","MAX_TOKENS":3}`:                                              {400, "MAX_TOKENS"},
		`{"prompt":"a","stream":true,"stream_options":{"Include_usage":true}}`:       {400, "Include_usage"},
		`{"prompt":"a","stream_options":{}}`:                                         {400, "stream_options"},
		`{"prompt":"a","model":"gpt-4"}`:                                             {404, "model"},
		`"` + strings.Repeat("a", 2<<20) + `"`:                                       {413, ""},
	} {
		w := send(s, "POST", "/v1/completions", body)
		var a answer
		json.Unmarshal(w.Body.Bytes(), &a)
		if w.Code != want.status || a.Error.Message == "" || a.Error.Param != want.param {
			t.Errorf("%.60s: status %d, %s; want %d for %q", body, w.Code, w.Body, want.status, want.param)
		}
	}
}

// Forms in which other clients write what changes nothing, and whole numbers, are accepted.
func TestWhatChangesNothingIsAccepted(t *testing.T) {
	s := newServer(t, Options{})
	want := complete(t, s, `{"prompt":"the","seed":7,"max_tokens":4,"logprobs":1}`).Choices[0].Text
	for _, more := range []string{
		`"logit_bias":{ }`, `"logit_bias":{"5":0,"6":0.0}`, `"logit_bias":null`, `"stream_options":null`,
		`"n":1.0,"top_k":-1.0,"best_of":1.00`, `"max_tokens":4.0,"seed":7.0,"logprobs":1.0`, `"suffix":null`,
	} {
		a := complete(t, s, `{"prompt":"the","seed":7,"max_tokens":4,"logprobs":1,`+more+`}`)
		if got := a.Choices[0].Text; got != want {
			t.Errorf("with %s: %q, want %q", more, got, want)
		}
	}
	w := send(s, "POST", "/v1/completions",
		`{"prompt":"a","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}`)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"total_tokens"`) {
		t.Errorf("without obfuscation: status %d, %s", w.Code, w.Body)
	}
}

// The most likely tokens of each place come first.
func TestTheMostLikelyTokensComeFirst(t *testing.T) {
	a := complete(t, newServer(t, Options{}), `{"prompt":"the sum","max_tokens":20,"seed":1,"logprobs":8,"echo":true}`)
	for i, top := range a.Choices[0].Logprobs.Top {
		if (i == 0) != (top == nil) || i > 0 && len(top) < 8 {
			t.Errorf("place %d has the tokens %v", i, top)
		}
		if !slices.IsSortedFunc(top, func(a, b wordLogprob) int { return cmp.Compare(b.logprob, a.logprob) }) {
			t.Errorf("the most likely tokens of place %d are not in order: %v", i, top)
		}
	}
}

// Of equally likely words the first stays first, and a word is there once.
func TestEqualWordsKeepTheirOrder(t *testing.T) {
	l := likely{}.set("z", -1).set("a", -1).set("<b>", -2).set("a", -1).set("z", -3)
	text, err := json.Marshal(map[string]likely{"few": l, "none": nil, "empty": {}})
	if want := `{"empty":{},"few":{"a":-1,"\u003cb\u003e":-2,"z":-3},"none":null}`; string(text) != want || err != nil {
		t.Errorf("%s, want %s, %v", text, want, err)
	}
}

// A client that asks for a model by its name learns whether it is here; a name may have slashes, as those of Hugging
// Face.
func TestAModelIsFoundByItsName(t *testing.T) {
	s := newServer(t, Options{Model: "org/m"})
	for path, want := range map[string]int{
		"/v1/models/org/m": 200, "/v1/models/org%2Fm": 200, "/v1/models/gpt-4": 404, "/v1/models/": 404,
	} {
		w := send(s, "GET", path, "")
		var a struct {
			ID     string
			Object string
			Error  struct{ Code string }
		}
		json.Unmarshal(w.Body.Bytes(), &a)
		found := a.ID == "org/m" && a.Object == "model"
		if w.Code != want || found != (want == 200) || !found && a.Error.Code != "model_not_found" {
			t.Errorf("%s: status %d, %s", path, w.Code, w.Body)
		}
	}
	if w := send(s, "DELETE", "/v1/models/org/m", ""); w.Code != 405 || w.Header().Get("Allow") != "GET" {
		t.Errorf("DELETE: status %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

// Names that lead here from elsewhere, pages of other servers and requests without the key are turned away.
func TestStrangersAreTurnedAway(t *testing.T) {
	s := newServer(t, Options{Key: "secret", Hosts: []string{"models.example"}})
	for _, x := range []struct {
		path, host, origin, key string
		want                    int
	}{
		{"/v1/models", "localhost", "", "Bearer secret", 200},
		{"/v1/models", "127.0.0.1:80", "http://localhost:3000", "Bearer secret", 200},
		{"/v1/models", "[::1]:80", "", "Bearer secret", 200},
		{"/v1/models", "Models.example:80", "", "Bearer secret", 200},
		{"/v1/models", "a.localhost", "", "Bearer secret", 200},
		{"/v1/models", "evil.example", "", "Bearer secret", 403},
		{"/v1/models", "localhost.evil.example", "", "Bearer secret", 403},
		{"/v1/models", "", "", "Bearer secret", 403},
		{"/v1/models", "localhost", "https://evil.example", "Bearer secret", 403},
		{"/v1/models", "localhost", "null", "Bearer secret", 403},
		{"/v1/models", "localhost", "", "", 401},
		{"/v1/models", "localhost", "", "secret", 401},
		{"/v1/models", "localhost", "", "Bearer secre", 401},
		{"/metrics", "localhost", "", "", 401},
		{"/health", "localhost", "", "", 200},
	} {
		r := httptest.NewRequest("GET", x.path, nil)
		r.Host = x.host
		r.Header.Set("Origin", x.origin)
		if x.origin == "" {
			r.Header.Del("Origin")
		}
		r.Header.Set("Authorization", x.key)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != x.want {
			t.Errorf("%+v: status %d", x, w.Code)
		}
	}
}

// What is tokenized comes back as text, and the metrics count what was done.
func TestTokensComeBackAsText(t *testing.T) {
	s := newServer(t, Options{})
	w := send(s, "POST", "/tokenize", `{"prompt":"the sum é","add_special_tokens":false,"return_token_strs":true}`)
	var ids struct {
		Count   int
		Tokens  []int32
		Strings []string `json:"token_strs"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &ids); err != nil || ids.Count == 0 || ids.Count != len(ids.Strings) {
		t.Fatalf("%s: %v", w.Body, err)
	}
	body, _ := json.Marshal(map[string]any{"tokens": ids.Tokens})
	if w := send(s, "POST", "/detokenize", string(body)); w.Body.String() != `{"prompt":"the sum é"}` {
		t.Errorf("%s", w.Body)
	}
	w = send(s, "POST", "/detokenize", `{"tokens":[5,null]}`)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"param":"tokens"`) {
		t.Errorf("null as a token: status %d, %s", w.Code, w.Body)
	}
	for path, body := range map[string]string{"/tokenize": `{"model":"x","prompt":"a"}`, "/detokenize": `{"model":"x"}`} {
		w = send(s, "POST", path, body)
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "model_not_found") {
			t.Errorf("%s by another model: status %d, %s", path, w.Code, w.Body)
		}
	}
	if w := send(s, "GET", "/tokenizer_info", ""); !strings.Contains(w.Body.String(), `"eos_token":"`) {
		t.Errorf("%s", w.Body)
	}
	complete(t, s, `{"prompt":[5,6,7],"max_tokens":4,"ignore_eos":true}`)
	w = send(s, "GET", "/metrics", "")
	for _, line := range []string{
		`anneal_serve_requests_total{code="200",endpoint="POST /v1/completions"} 1`,
		"anneal_serve_prompt_tokens_total 3", "anneal_serve_generated_tokens_total 4",
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, w.Body)
		}
	}
}

// More requests than the server takes get the status 429; a client that goes away frees its place.
func TestARequestThatIsGivenUpFreesItsPlace(t *testing.T) {
	s := newServer(t, Options{Sequences: 1, Requests: 2})
	ctx, leave := context.WithCancel(t.Context())
	const long = `{"prompt":"a","max_tokens":60,"n":100,"ignore_eos":true}`
	var wait sync.WaitGroup
	for _, body := range []string{long, strings.Replace(long, "{", `{"stream":true,`, 1)} {
		wait.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "POST", "/v1/completions", strings.NewReader(body))
			r.Host = "localhost"
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	for running, waiting := 0, 0; running == 0 || waiting < 150; running, waiting = s.loop.counts() {
		time.Sleep(time.Millisecond)
	}
	if w := send(s, "POST", "/v1/completions", long); w.Code != http.StatusTooManyRequests {
		t.Errorf("a third request: status %d, %s", w.Code, w.Body)
	}
	leave()
	wait.Wait()
	complete(t, s, `{"prompt":"a","max_tokens":2}`) // a place and a slot are free
	if running, waiting := s.loop.counts(); running+waiting > 1 {
		t.Errorf("%d sequences run and %d wait after all clients have left", running, waiting)
	}
	const left = `anneal_serve_requests_total{code="499",endpoint="POST /v1/completions"} 2`
	if w := send(s, "GET", "/metrics", ""); !strings.Contains(w.Body.String(), left) {
		t.Errorf("the metrics lack %q", left)
	}
}

// A path that is asked by another method says by which.
func TestEndpointsNameTheirMethod(t *testing.T) {
	s := newServer(t, Options{})
	for path, method := range map[string]string{"/v1/completions": "POST", "/v1/models": "GET", "/health": "GET"} {
		w := send(s, "DELETE", path, "")
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != method {
			t.Errorf("DELETE %s: status %d, Allow %q", path, w.Code, w.Header().Get("Allow"))
		}
	}
	if w := send(s, "GET", "/v1/nothing", ""); w.Code != http.StatusNotFound {
		t.Errorf("a path that is none: status %d", w.Code)
	}
	w := send(s, "POST", "/v1/chat/completions", `{"messages":[]}`)
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "/v1/completions") {
		t.Errorf("a chat: status %d, %s; want what to do instead", w.Code, w.Body)
	}
}

// A request ends when its time is up.
func TestARequestEndsWhenItsTimeIsUp(t *testing.T) {
	s := newServer(t, Options{Sequences: 1, Timeout: 20 * time.Millisecond})
	w := send(s, "POST", "/v1/completions", `{"prompt":"a","max_tokens":60,"n":128,"ignore_eos":true}`)
	if w.Code != http.StatusGatewayTimeout {
		t.Errorf("status %d, %.200s", w.Code, w.Body)
	}
}

// The end waits for requests in hand and takes no more.
func TestTheEndWaitsForRequestsInHand(t *testing.T) {
	s := newServer(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	url := "http://" + l.Addr().String() + "/v1/completions"
	answered, err := http.Post(url, "application/json", strings.NewReader(
		`{"prompt":"a","max_tokens":60,"n":20,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answered.Body.Close()
	end()
	text, err := io.ReadAll(answered.Body)
	if err != nil || !bytes.HasSuffix(text, []byte("data: [DONE]\n\n")) {
		t.Errorf("a stream in hand ends with %.80q, %v", text[max(len(text)-80, 0):], err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := http.Post(url, "application/json", strings.NewReader(`{"prompt":"a"}`)); err == nil {
		t.Error("a request after the end was answered")
	}
}

// Requests that take longer than the drain are answered with an error, and Serve says how many they were.
func TestTheEndAnswersRequestsThatTakeTooLong(t *testing.T) {
	s := newServer(t, Options{Sequences: 1, Drain: 10 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	answers := make(chan string, 2)
	for _, stream := range []string{"", `"stream":true,`} {
		go func() {
			w, err := http.Post("http://"+l.Addr().String()+"/v1/completions", "application/json",
				strings.NewReader(`{`+stream+`"prompt":"a","max_tokens":60,"n":100,"ignore_eos":true}`))
			if err != nil {
				answers <- err.Error()
				return
			}
			defer w.Body.Close()
			text, err := io.ReadAll(w.Body)
			answers <- fmt.Sprint(string(text[max(len(text)-200, 0):]), err)
		}()
	}
	for len(s.requests) < 2 {
		time.Sleep(time.Millisecond)
	}
	end()
	for range 2 {
		if text := <-answers; !strings.Contains(text, "shutting down") {
			t.Errorf("a request in hand: %s", text)
		}
	}
	if err := <-served; !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "2 took longer than 10ms") {
		t.Error(err)
	}
}

// Whatever is posted, the answer is JSON, and never a failure of the server.
func FuzzCompletions(f *testing.F) {
	for _, seed := range []string{
		`{"prompt":"a","max_tokens":2,"n":2,"logprobs":1,"echo":true,"stop":["x"],"stream":true}`,
		`{"prompt":[[1,2],[3]],"max_tokens":0,"top_k":-1,"min_p":1e-9}`, `{"prompt":["",""]}`, `[`, `null`, `{"prompt":[1e99]}`,
	} {
		f.Add("/v1/completions", seed)
		f.Add("/tokenize", seed)
		f.Add("/detokenize", strings.ReplaceAll(seed, "prompt", "tokens"))
	}
	s := newServer(f, Options{Timeout: 5 * time.Second})
	f.Fuzz(func(t *testing.T, path, body string) {
		if !slices.Contains([]string{"/v1/completions", "/tokenize", "/detokenize"}, path) {
			return
		}
		w := send(s, "POST", path, body)
		text := bytes.TrimPrefix(w.Body.Bytes(), []byte("data: "))
		text, _, _ = bytes.Cut(text, []byte("\n\n"))
		if w.Code >= 500 && w.Code != http.StatusGatewayTimeout || !json.Valid(text) {
			t.Fatalf("%s %q: status %d, %q", path, body, w.Code, w.Body)
		}
	})
}
