package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/egress"
)

// Authenticator verifies bearer tokens. For a token that is not valid it returns
// a *contract.Error with contract.CodeUnauthenticated, whose message may be sent
// to the client. The returned Caller is shared and must not be modified.
type Authenticator interface {
	Verify(ctx context.Context, token string) (*contract.Caller, error)
}

// accessPolicy decides who may connect and who the caller of a request is.
type accessPolicy interface {
	checkListener(addr net.Addr) error
	checkHost(host string) error
	authenticateCaller(c *Context) (*contract.Caller, error)
	// recheckCaller returns an error if the caller of a request that was accepted
	// before would be rejected now.
	recheckCaller(c *Context) error
	// hasManyCallers reports whether limits per caller apply.
	hasManyCallers() bool
}

func newAccessPolicy(auth Authenticator) accessPolicy {
	if auth == nil {
		return &localAccess{caller: contract.LocalCaller()}
	}
	return &tokenAccess{auth: auth}
}

// localAccess is for a server without authentication: everyone is the local
// caller, so only this machine may connect. Tokens are ignored.
type localAccess struct{ caller *contract.Caller }

func (*localAccess) hasManyCallers() bool { return false }

func (*localAccess) checkListener(addr net.Addr) error {
	switch a := addr.(type) {
	case *net.TCPAddr:
		if a.IP.IsLoopback() {
			return nil
		}
	case *net.UnixAddr:
		return nil
	}
	return fmt.Errorf("listen on %s: without authentication only loopback addresses are served", addr)
}

// checkHost defends against DNS rebinding: a page of a hostile site whose name
// resolves to 127.0.0.1 sends requests with that site's name as their Host.
func (*localAccess) checkHost(host string) error {
	if isLoopbackHost(host) {
		return nil
	}
	return &contract.Error{
		Code:    contract.CodeForbidden,
		Message: "without authentication only requests to localhost or a loopback address are answered",
	}
}

func (a *localAccess) authenticateCaller(*Context) (*contract.Caller, error) { return a.caller, nil }
func (*localAccess) recheckCaller(*Context) error                            { return nil }

// isLoopbackHost reports whether a Host header names this machine by a name or
// address that no DNS answer can redirect.
func isLoopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return egress.IsLoopback(host)
}

// tokenAccess identifies callers by their bearer tokens.
type tokenAccess struct{ auth Authenticator }

func (*tokenAccess) hasManyCallers() bool         { return true }
func (*tokenAccess) checkListener(net.Addr) error { return nil }
func (*tokenAccess) checkHost(string) error       { return nil }
func (a *tokenAccess) authenticateCaller(c *Context) (*contract.Caller, error) {
	if len(c.Request.Header["Authorization"]) == 0 {
		c.SetHeader("Connection", "close") // anonymous clients must not hold connections
		return nil, c.RequireToken("a token is needed: Authorization: Bearer …")
	}
	token := BearerToken(c.Request.Header)
	if token == "" {
		return nil, c.RejectToken(&contract.Error{
			Code: contract.CodeUnauthenticated, Message: "there must be one Authorization header, with the scheme Bearer and a token",
		})
	}
	caller, err := a.auth.Verify(c.Request.Context(), token)
	if err != nil {
		return nil, c.RejectToken(err)
	}
	return caller, nil
}

func (a *tokenAccess) recheckCaller(c *Context) error {
	_, err := a.auth.Verify(c.Request.Context(), BearerToken(c.Request.Header))
	return err
}

// authorizeRequest identifies the caller and checks the scope of the route.
func (s *Server) authorizeRequest(c *Context) error {
	scope := c.route.Scope
	switch {
	case c.route.Authorize != nil:
		return c.route.Authorize(c)
	case scope == Public:
		return nil
	}
	caller, err := s.access.authenticateCaller(c)
	if err != nil {
		return err
	}
	if !c.route.permits(caller) {
		c.challenge(`error="insufficient_scope"`, `scope="`+scope+`"`)
		if c.route.MissingScope != nil {
			return c.route.MissingScope
		}
		return &contract.Error{Code: contract.CodeForbidden, Message: "the token lacks the scope " + scope}
	}
	c.Caller, c.MemoryOwner = caller, memoryOwnerOf(caller)
	return nil
}

// permits reports whether the caller holds a scope of the route.
func (r *Route) permits(caller *contract.Caller) bool {
	switch {
	case r.OrAdmin && caller.HasScope(contract.ScopeAdmin):
		return true
	case r.HasScope != nil:
		return r.HasScope(caller)
	}
	return caller.HasScope(r.Scope)
}

// RequireToken returns the error of a request without a token, and asks for one
// in a header (RFC 6750 §3).
func (c *Context) RequireToken(message string) error {
	c.challenge()
	return &contract.Error{Code: contract.CodeUnauthenticated, Message: message}
}

// challenge asks for a token (RFC 6750 §3), and states where to get one if the API does
// (RFC 9728 §5.1).
func (c *Context) challenge(parameters ...string) {
	if c.route != nil && c.route.api.ResourceMetadata != nil {
		parameters = append(parameters, `resource_metadata="`+c.route.api.ResourceMetadata()+`"`)
	}
	c.SetHeader("Www-Authenticate", strings.TrimSuffix("Bearer "+strings.Join(parameters, ", "), " "))
}

// RejectToken returns err. If it is an authentication error, a header gives the
// reason (RFC 6750 §3) and the connection is closed after the response.
func (c *Context) RejectToken(err error) error {
	if e, ok := errors.AsType[*contract.Error](err); ok && e.Code == contract.CodeUnauthenticated {
		c.SetHeader("Connection", "close")
		c.challenge(`error="invalid_token"`, `error_description="`+removeUnquotable(e.Message)+`"`)
	}
	return err
}

// removeUnquotable removes the characters that a quoted string of a header must
// not contain.
func removeUnquotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, s)
}

// BearerToken returns the token of the Authorization header (RFC 6750 §2.1), or
// "" if there is none or more than one.
func BearerToken(h http.Header) string {
	values := h["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
