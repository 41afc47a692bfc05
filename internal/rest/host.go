package rest

import (
	"net"
	"strings"

	"github.com/caprouter/caprouter/internal/egress"
)

// loopbackHost reports whether a Host header names this machine by a name or
// address that no DNS answer can point elsewhere. A page of a hostile site whose
// name resolves to 127.0.0.1 (DNS rebinding) sends that site's name.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return egress.Loopback(host)
}

// loopbackListener reports whether only this machine reaches the listener.
func loopbackListener(ln net.Listener) bool {
	switch addr := ln.Addr().(type) {
	case *net.TCPAddr:
		return addr.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}
