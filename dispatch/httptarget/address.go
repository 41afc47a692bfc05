package httptarget

import (
	"errors"
	"net/url"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/egress"
)

// locate finds out where the agent is and which connections may lead there. An
// address that did not come from the operator's file is called behind the guard,
// or not at all.
func (e *errand) locate() *failure {
	entry, t := e.call.Agent, e.target
	var err error
	if e.url, err = address(entry.Endpoint.URL, t.plainHTTP); err != nil {
		return &failure{code: contract.TaskAgentUnavailable, detail: entry.ID + " " + err.Error(), cause: err}
	}
	if entry.Origin == contract.OriginFile {
		e.transport = t.trusted
		return nil
	}
	if t.guarded == nil {
		err = errors.New("agents that registered themselves are not called: there is no guard")
	} else {
		err = t.guard.CheckURL(e.url)
	}
	if err != nil {
		return e.barred(err)
	}
	e.transport = t.guarded
	return nil
}

// barred makes the failure of an agent whose address may not be called. It is
// one of the agent's: as long as it is there, others should get its tasks.
func (e *errand) barred(cause error) *failure {
	return &failure{
		code: contract.TaskAgentUnavailable, detail: e.call.Agent.ID + " could not be reached: its address may not be called",
		cause: cause, health: dispatch.HealthBad,
	}
}

// address checks where an endpoint is. The errors go on after the agent's id,
// and do not repeat the address: whoever reads them may not know it.
func address(endpoint string, allowPlainHTTP bool) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("has an endpoint.url that is no URL; write http(s)://host:port/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("has an endpoint.url that is neither http nor https")
	case u.Scheme == "http" && !allowPlainHTTP && !egress.Loopback(u.Hostname()):
		return nil, errors.New("is on another host over plain http, where its token could be read: use https, or set dispatch.allow_plain_http: true")
	}
	if u.Path == "" {
		u.Path = "/" // RFC 9112 §3.2.1; JoinPath would make a relative path of it
	}
	return u, nil
}
