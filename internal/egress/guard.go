package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// Guard refuses connections to all but public addresses and the ranges the
// operator allows. Below 1024 only the ports of HTTP are let through: what
// listens on the others, mail and shells, was never meant to be sent tasks. In
// the operator's ranges any port is. A nil Guard refuses nothing: it is for
// addresses the operator wrote down. It may be used from any goroutine.
type Guard struct {
	allowed []netip.Prefix
	public  *ssrf.Guardian
}

// NewGuard returns a Guard that lets the ranges through as well. One of IPv6
// stands for its own addresses only, whatever IPv4 addresses are inside them.
func NewGuard(allowed ...netip.Prefix) *Guard {
	return &Guard{
		allowed: slices.Clone(allowed),
		public: ssrf.New(
			// Globally routed by its number, but in Azure it is the host a
			// virtual machine gets its certificates and settings from.
			ssrf.WithDeniedV4Prefixes(netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32)),
		),
	}
}

// Control is for net.Dialer: it refuses a connection when the address is known
// and before a packet is sent.
func (g *Guard) Control(network, address string, _ syscall.RawConn) error {
	if g == nil {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return &BlockedError{Addr: address}
	}
	return g.check(at.Addr(), at.Port())
}

// Check returns a *Refused for an address that may not be called.
func (g *Guard) Check(addr netip.Addr) error { return g.check(addr, httpsPort) }

// The ports of HTTP, and the first that needs no privilege to listen on.
const (
	httpPort     = 80
	httpsPort    = 443
	unprivileged = 1024
)

func (g *Guard) check(addr netip.Addr, port uint16) error {
	if g == nil {
		return nil
	}
	// A range has no zone, so it would contain no address with one.
	bare := addr.WithZone("")
	if slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(bare) }) {
		return nil
	}
	if port < unprivileged && port != httpPort && port != httpsPort {
		return &BlockedError{Addr: netip.AddrPortFrom(addr, port).String()}
	}
	// The library takes what is no address for one of IPv4.
	if !addr.IsValid() || tunnels(addr) || g.public.SafeAddr(addr) != nil {
		return &BlockedError{Addr: addr.String()}
	}
	return nil
}

// tunnels reports whether addr is one of ISATAP (RFC 5214, section 6.1): its
// router sends on to the IPv4 address inside, under a prefix like any other.
func tunnels(addr netip.Addr) bool {
	b := addr.As16()
	return addr.Is6() && b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// BlockedError says that a connection to an address was not made.
type BlockedError struct { //nolint:errname // what came of a dial, not what went wrong with one
	Addr string // with its port, if it was not even an address
}

// Error implements error.
func (r *BlockedError) Error() string {
	return fmt.Sprintf("%s may not be called: it is no public address, or not a port of HTTP; dispatch.allow_private can allow its range", r.Addr)
}
