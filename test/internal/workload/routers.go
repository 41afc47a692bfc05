package workload

import (
	"errors"
	"net/http"
	"slices"
	"sync"
)

// PublicURL is the base of callback URLs. The port of a router changes with each start;
// Routers knows the addresses.
const PublicURL = "http://localhost"

// Routers is a load balancer: an HTTP client that sends requests to the running routers
// in turn, whatever host a URL names. Its methods are safe for concurrent use.
type Routers struct {
	Client    *http.Client
	transport *http.Transport

	mu    sync.Mutex
	addrs []string
	next  int
}

var errNoRouter = errors.New("no router is running")

// NewRouters returns a balancer without routers.
func NewRouters() *Routers {
	r := &Routers{transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	r.Client = &http.Client{Transport: r}
	return r
}

// RoundTrip implements http.RoundTripper. It does not send a request again if a router
// does not answer.
func (r *Routers) RoundTrip(req *http.Request) (*http.Response, error) {
	addr, err := r.selectAddr()
	if err != nil {
		return nil, err
	}
	return sendTo(r.transport, addr, req)
}

func (r *Routers) selectAddr() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.addrs) == 0 {
		return "", errNoRouter
	}
	r.next++
	return r.addrs[r.next%len(r.addrs)], nil
}

// sendTo sends the request to the address, with the Host header of its URL.
func sendTo(transport http.RoundTripper, addr string, req *http.Request) (*http.Response, error) {
	sent := req.Clone(req.Context())
	sent.Host, sent.URL.Host = req.URL.Host, addr
	return transport.RoundTrip(sent)
}

// Add adds a router, at host:port.
func (r *Routers) Add(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addrs = append(r.addrs, addr)
}

// Remove removes a router. Requests in progress continue.
func (r *Routers) Remove(addr string) {
	r.mu.Lock()
	r.addrs = slices.DeleteFunc(r.addrs, func(a string) bool { return a == addr })
	r.mu.Unlock()
	r.transport.CloseIdleConnections()
}

// OneRouter returns a balancer of one router alone.
func OneRouter(addr string) *Routers {
	r := NewRouters()
	r.Add(addr)
	return r
}
