package serve

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
)

// tokenize answers POST /tokenize, in vLLM's form.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model            string  `json:"model"`
		Prompt           *string `json:"prompt"`
		AddSpecialTokens *bool   `json:"add_special_tokens"`
		ReturnTokenStrs  bool    `json:"return_token_strs"`
	}
	e := readJSON(w, r, &q)
	if e == nil {
		e = s.o.knows(cmp.Or(q.Model, s.o.Model))
	}
	if e != nil {
		fail(w, e)
		return
	}
	if q.Prompt == nil {
		fail(w, invalid("prompt", "there is no prompt"))
		return
	}
	release := take(w, s.texts)
	if release == nil {
		return
	}
	defer release()
	ids, err := s.r.Encode(*q.Prompt, !or(q.AddSpecialTokens, true))
	if err != nil {
		ids = []int32{}
	}
	answer := map[string]any{"count": len(ids), "max_model_len": s.r.Context(), "tokens": ids, "token_strs": nil}
	if q.ReturnTokenStrs {
		x, words := wording{r: s.r}, make([]string, len(ids))
		for i, id := range ids {
			words[i] = x.word(id)
		}
		answer["token_strs"] = words
	}
	reply(w, http.StatusOK, answer)
}

// detokenize answers POST /detokenize, in vLLM's form.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model  string   `json:"model"`
		Tokens []*int32 `json:"tokens"` // null would be read as 0
	}
	e := readJSON(w, r, &q)
	if e == nil {
		e = s.o.knows(cmp.Or(q.Model, s.o.Model))
	}
	if e == nil && slices.Contains(q.Tokens, nil) {
		e = invalid("tokens", "null is not a token id")
	}
	ids := make([]int32, len(q.Tokens))
	if e == nil && len(ids) > 0 {
		for i, id := range q.Tokens {
			ids[i] = *id
		}
		e = checkIDs("tokens", ids, s.r.Model.Config.Vocab)
	}
	if e != nil {
		fail(w, e)
		return
	}
	release := take(w, s.texts)
	if release == nil {
		return
	}
	defer release()
	reply(w, http.StatusOK, map[string]string{"prompt": textOf(s.r, ids)})
}

// tokenizerInfo answers GET /tokenizer_info with the tokenizer's tokenizer_config.json.
func (s *Server) tokenizerInfo(w http.ResponseWriter, _ *http.Request) {
	info := map[string]any{}
	if err := json.Unmarshal(s.r.Tokenizer.ConfigJSON(), &info); err != nil {
		panic(err) // it is our own
	}
	info["model_max_length"], info["vocab_size"] = s.r.Context(), s.r.Tokenizer.VocabSize()
	reply(w, http.StatusOK, info)
}
