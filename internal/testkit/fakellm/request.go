package fakellm

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/llm"
)

// Operation is what a request asks for.
type Operation string

// The operations the fakes know.
const (
	Generate   Operation = "generate"
	GetModel   Operation = "get_model"
	ListModels Operation = "list_models"
	Other      Operation = "other" // no such path or method
)

// Request is what a server got: as it came, and what its wire makes of it.
type Request struct {
	Operation Operation
	Call      int    // which of the calls that the script answers this is, from 0; −1 = it was refused before
	Refused   string // why
	Method    string
	URL       string // path and query
	Header    http.Header
	Body      []byte

	RequestContent
}

// RequestContent is what a request says, whatever its wire.
type RequestContent struct {
	Key             string
	Model           string
	System          string
	User            string      // the turns of the user, joined by newlines
	MIMEType        string      // of the reply; application/json where the wire says it otherwise
	Schema          *llm.Schema // its properties by name
	Optional        []string    // properties that Schema does not require
	MaxOutputTokens int         // 0 = not said
	Temperature     *float64
	Thinking        string // as JSON; "" = not said
}

// Places lists where a text, such as the key, is found in the request: "url",
// "body" or a header's name.
func (r *Request) Places(text string) []string {
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
