package httpapi

import (
	"net/http"

	"github.com/caprouter/caprouter/contract"
)

// Authenticator says who sends a request. The error of a request whose sender
// is not known is a *contract.Error with code CodeUnauthenticated.
type Authenticator interface {
	Authenticate(r *http.Request) (*contract.Caller, error)
}

// localPrincipal takes every request for the one local caller.
type localPrincipal struct{ caller *contract.Caller }

// Authenticate looks at nothing.
func (l localPrincipal) Authenticate(*http.Request) (*contract.Caller, error) { return l.caller, nil }
