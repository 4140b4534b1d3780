package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// An apiError is an error in the form of OpenAI's API.
type apiError struct {
	status      int
	kind        string // invalid_request_error, …
	param, code string // "" if there is none
	message     string
}

func (e *apiError) Error() string { return e.message }

// invalid returns the error for a wrong parameter of a request; the name is "" if no single parameter is wrong.
func invalid(param, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "invalid_request_error", param, "", fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *apiError {
	return &apiError{http.StatusNotFound, "invalid_request_error", "", "not_found", fmt.Sprintf(format, args...)}
}

func shuttingDown() *apiError {
	return &apiError{http.StatusServiceUnavailable, "server_error", "", "", "the server is shutting down"}
}

// body is the JSON of an error.
func (e *apiError) body() map[string]any {
	optional := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	return map[string]any{"error": map[string]any{
		"message": e.message, "type": e.kind, "param": optional(e.param), "code": optional(e.code),
	}}
}

func fail(w http.ResponseWriter, e *apiError) {
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge:
		// The body has not been read to its end. Without this net/http waits for up to 256 KB of it before it answers.
		w.Header().Set("Connection", "close")
	}
	reply(w, e.status, e.body())
}

// reply writes a JSON object. It gives up on a client that does not receive it.
func reply(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a float that is not finite, which logprobs.go leaves out
	}
	w.Header().Set("Content-Type", "application/json")
	// net/http may read the rest of a body first
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime + writeTime))
	w.WriteHeader(status)
	w.Write(text)
}
