package agentkit

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// problem is an error response (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func problemf(status int, code, format string, args ...any) *problem {
	return &problem{Title: http.StatusText(status), Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

func (p *problem) writeTo(w http.ResponseWriter) {
	switch p.Status { // RFC 6750, section 3
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
	case http.StatusForbidden:
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
	}
	body, _ := json.Marshal(p) // strings and a number cannot fail
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client has disconnected
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has disconnected
}
