package egress

import (
	"net/netip"
	"strings"
)

// IsLoopback reports whether a host, without a port or brackets, is this machine
// by a name or an address that no DNS answer can point elsewhere. It resolves
// nothing: what a name means may change after the check. localhost is the one
// name that is tied to loopback (RFC 6761 §6.3).
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
