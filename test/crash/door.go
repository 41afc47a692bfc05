package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
)

// door leads to the router that is up, whatever the address in a URL says: its
// port changes with every start. Nobody has to listen in between, and no port
// has to be free twice.
type door struct {
	addr   atomic.Pointer[string]
	client *http.Client
}

// errDown is what callers and agents meet between two routers.
var errDown = errors.New("the router is down")

func newDoor() *door {
	d := &door{}
	var dialer net.Dialer
	d.client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			addr := d.addr.Load()
			if addr == nil {
				return nil, errDown
			}
			return dialer.DialContext(ctx, network, *addr)
		},
	}}
	return d
}

// open leads to the address from now on.
func (d *door) open(addr string) { d.addr.Store(&addr) }

// shut leads nowhere.
func (d *door) shut() {
	d.addr.Store(nil)
	d.client.CloseIdleConnections()
}
