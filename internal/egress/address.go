package egress

import (
	"net/netip"
	"strings"
	"syscall"
)

// IsLoopback reports whether a host, without port or brackets, is this machine by
// a name or address that DNS cannot redirect. It resolves nothing, because the
// address of a name may change after the check. "localhost" is the only name that
// is tied to loopback (RFC 6761 §6.3).
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// AddressPolicy decides which addresses a dialer connects to.
type AddressPolicy interface {
	// Control is the Control function of a net.Dialer. Its error prevents the
	// connection before a packet is sent.
	Control(network, address string, c syscall.RawConn) error
}

// Unrestricted is the AddressPolicy for addresses that the operator configured.
type Unrestricted struct{}

// Control implements AddressPolicy.
func (Unrestricted) Control(string, string, syscall.RawConn) error { return nil }
