package egress

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"code.dny.dev/ssrf"
)

// Guard is an AddressPolicy that allows public addresses and the ranges of the
// operator. On public addresses it blocks the ports below 1024 except those of
// HTTP, because services such as mail and SSH listen there. In the operator's
// ranges it allows every port. It may be used from any goroutine.
type Guard struct {
	allowed []netip.Prefix
	public  *ssrf.Guardian
}

// NewGuard returns a Guard that allows the ranges in addition to public
// addresses. A range of IPv6 does not include IPv4 addresses that are embedded in
// its addresses.
func NewGuard(allowed ...netip.Prefix) *Guard {
	return &Guard{
		allowed: slices.Clone(allowed),
		public: ssrf.New(
			// This address is public by its number, but in Azure it is the host
			// that serves certificates and settings to virtual machines.
			ssrf.WithDeniedV4Prefixes(netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32)),
		),
	}
}

// Control implements AddressPolicy. Its error is a *BlockedError.
func (g *Guard) Control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return &BlockedError{Addr: address}
	}
	return g.checkPort(at.Addr(), at.Port())
}

// Check returns a *BlockedError if the guard does not allow the address.
func (g *Guard) Check(addr netip.Addr) error { return g.checkPort(addr, httpsPort) }

// The ports of HTTP, and the first unprivileged port.
const (
	httpPort         = 80
	httpsPort        = 443
	unprivilegedPort = 1024
)

func (g *Guard) checkPort(addr netip.Addr, port uint16) error {
	bare := addr.WithZone("") // a prefix contains no address with a zone
	if slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(bare) }) {
		return nil
	}
	if port < unprivilegedPort && port != httpPort && port != httpsPort {
		return &BlockedError{Addr: netip.AddrPortFrom(addr, port).String()}
	}
	// SafeAddr treats an invalid address as one of IPv4, so check that first.
	if !addr.IsValid() || isISATAP(addr) || g.public.SafeAddr(addr) != nil {
		return &BlockedError{Addr: addr.String()}
	}
	return nil
}

// isISATAP reports whether addr is an ISATAP address (RFC 5214, section 6.1). Its
// router forwards to the IPv4 address embedded in it.
func isISATAP(addr netip.Addr) bool {
	b := addr.As16()
	return addr.Is6() && b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// CheckURL rejects a URL that can never be called, or that a reader and a client
// may interpret differently. It checks a host only if it is an address; names are
// checked by Control.
func (g *Guard) CheckURL(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL is neither http nor https")
	case host == "" || u.Opaque != "":
		return errors.New("the URL names no host")
	case u.User != nil:
		return errors.New("the URL holds a user name or password; tasks come with a token")
	case u.Fragment != "":
		return errors.New("the URL has a fragment, which is not sent to the server")
	case u.Port() != "" && !isPort(u.Port()), strings.HasSuffix(u.Host, ":"):
		return errors.New("the URL has an invalid port")
	case strings.ContainsFunc(u.Path+host, unicode.IsControl):
		return errors.New("the URL holds control characters")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return g.Check(addr)
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// BlockedError reports that a Guard prevented a connection.
type BlockedError struct {
	Addr string // with the port if the port is the reason
}

// Error implements error.
func (e *BlockedError) Error() string {
	remedy := "dispatch.allow_private can allow its range"
	addr, err := netip.ParseAddr(e.Addr)
	if withPort, portErr := netip.ParseAddrPort(e.Addr); portErr == nil {
		addr, err = withPort.Addr(), nil
	}
	if err == nil {
		remedy += ", for example " + netip.PrefixFrom(addr.WithZone(""), addr.BitLen()).String() + ", in the configuration of the router"
	}
	return e.Addr + " may not be called: it is no public address, or not a port of HTTP; " + remedy
}
