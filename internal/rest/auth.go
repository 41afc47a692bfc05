package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// Authenticator says who sends a request with the token. The error of a token
// that does not count is a *contract.Error with code CodeUnauthenticated, whose
// message may be told to whoever sent it. The caller is shared: nobody changes it.
type Authenticator interface {
	Verify(ctx context.Context, token string) (*contract.Caller, error)
}

// RateLimit says whether the caller may have one more of what the limit is for,
// and how the limit stands then.
type RateLimit interface {
	Take(caller *contract.Caller) (contract.Limit, bool)
}

// authorize finds out who calls and checks that the caller holds the scope.
func (s *Server) authorize(x *exchange, c echo.Context, scope string) error {
	switch scope {
	case scopePublic:
		return nil
	case contract.ScopeTasksWork:
		return s.authorizeTask(x, c)
	}
	caller, err := s.authenticate(x)
	if err != nil {
		return err
	}
	if !caller.HasScope(scope) {
		x.set("Www-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
		return &contract.Error{Code: contract.CodeForbidden, Message: "this needs the scope " + scope}
	}
	x.caller = caller
	return nil
}

// authenticate finds out who calls. Where nothing authenticates, everybody is
// the local principal, and tokens are not looked at.
func (s *Server) authenticate(x *exchange) (*contract.Caller, error) {
	if s.local != nil {
		return s.local, nil
	}
	if len(x.req.Header["Authorization"]) == 0 {
		x.set("Www-Authenticate", "Bearer")
		x.set("Connection", "close") // strangers keep no connection
		return nil, &contract.Error{Code: contract.CodeUnauthenticated, Message: "a token is needed: Authorization: Bearer …"}
	}
	token := bearer(x.req.Header)
	if token == "" {
		return nil, challenge(x, &contract.Error{
			Code: contract.CodeUnauthenticated, Message: "there must be one Authorization header, with the scheme Bearer and a token",
		})
	}
	caller, err := s.cfg.Auth.Verify(x.req.Context(), token)
	if err != nil {
		return nil, challenge(x, err)
	}
	return caller, nil
}

// authorizeTask checks that the token is the one of the task in the path.
func (s *Server) authorizeTask(x *exchange, c echo.Context) error {
	grant, err := s.deps.TaskTokens(bearer(x.req.Header))
	switch {
	case len(x.req.Header["Authorization"]) == 0:
		x.set("Www-Authenticate", "Bearer")
		return &contract.Error{Code: contract.CodeUnauthenticated, Message: "the token of the task is needed: Authorization: Bearer …"}
	case err != nil:
		return challenge(x, &contract.Error{
			Code: contract.CodeUnauthenticated, Message: "the task's token is not valid or has expired",
		})
	case grant.TaskID != c.Param("id"):
		return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such task for this token"}
	}
	x.grant = grant
	return nil
}

// challenge says in a header why a token was not taken (RFC 6750 §3).
func challenge(x *exchange, err error) error {
	if e, ok := errors.AsType[*contract.Error](err); ok && e.Code == contract.CodeUnauthenticated {
		x.set("Connection", "close")
		x.set("Www-Authenticate", `Bearer error="invalid_token", error_description="`+quotable(e.Message)+`"`)
	}
	return err
}

// quotable leaves out what a quoted string of a header may not hold.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, s)
}

// bearer returns the token of an Authorization header (RFC 6750 §2.1), "" when
// there is none or more than one.
func bearer(h http.Header) string {
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
