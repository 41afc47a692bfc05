package fakellm

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/llm"
)

// Operation is the operation of a request.
type Operation string

// Operations.
const (
	Generate   Operation = "generate"
	GetModel   Operation = "get_model"
	ListModels Operation = "list_models"
	Other      Operation = "other" // no such path or method
)

// Request is a request as received, and its parsed content.
type Request struct {
	Operation Operation
	Call      int    // number of the generate call, from 0; −1 = rejected
	Rejected  string // reason, if it was rejected
	Method    string
	URL       string // path and query
	Header    http.Header
	Body      []byte

	RequestContent
}

// RequestContent is the content of a request in any protocol.
type RequestContent struct {
	Key             string
	Model           string
	System          string
	User            string      // user messages, joined by newlines
	MIMEType        string      // of the reply; application/json if the protocol requests JSON in another way
	Schema          *llm.Schema // properties sorted by name
	Optional        []string    // properties that the schema does not require
	MaxOutputTokens int         // 0 = not set
	Temperature     *float64
	Thinking        string // as JSON; "" = not set
}

// FindText lists where a text, such as the key, occurs in the request: "url",
// "body" or header names.
func (r *Request) FindText(text string) []string {
	var found []string
	if strings.Contains(r.URL, text) {
		found = append(found, "url")
	}
	if strings.Contains(string(r.Body), text) {
		found = append(found, "body")
	}
	for name, values := range r.Header {
		if strings.Contains(strings.Join(values, "\n"), text) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}
