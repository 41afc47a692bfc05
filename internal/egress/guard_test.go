package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/egress"
)

// isBlocked reports whether err is a *BlockedError.
func isBlocked(err error) bool {
	_, ok := errors.AsType[*egress.BlockedError](err)
	return ok
}

func TestGuard_BlocksSpecialAddresses(t *testing.T) {
	guard := egress.NewGuard()
	for _, tc := range []struct {
		what  string
		addrs string
		may   bool
	}{
		{"public", "1.1.1.1 8.8.8.8 93.184.215.14 2606:4700:4700::1111 2a00:1450:4001::1", true},
		{"next to a special range", "9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255", true},
		{"loopback", "127.0.0.1 127.255.255.255 ::1", false},
		{"unspecified", "0.0.0.0 0.1.2.3 ::", false},
		{"private", "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd00:ec2::254", false},
		{"link-local", "169.254.169.254 fe80::1 fe80::1%eth0 febf::1", false},
		{"with a zone, which only link-local addresses have", "2606:4700:4700::1111%eth0", false},
		{"site-local", "fec0::1 feff::1", false},
		{"shared by customers of a provider", "100.64.0.1 100.100.100.200 100.127.255.255", false},
		{"protocol assignments", "192.0.0.1 192.0.0.192 2001:20::1", false},
		{"documentation", "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1", false},
		{"benchmarking", "198.18.0.1 198.19.255.255 2001:2::1", false},
		{"multicast", "224.0.0.1 239.255.255.250 ff02::1 ff0e::1", false},
		{"reserved, broadcast", "240.0.0.1 255.255.255.255", false},
		{"IPv4 in IPv6", "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 ::ffff:0:10.0.0.1", false},
		{"6to4", "2002:7f00:1:: 2002:a00:1::1", false},
		{"Teredo", "2001:0:a9fe:a9fe::1 2001::1", false},
		{"NAT64", "64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1", false},
		{"ISATAP", "2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:7f00:1", false},
		{"almost ISATAP", "2606:4700::5eff:10.0.0.1 2606:4700::100:5efe:7f00:1", true},
		// The destination of a translated address is unknown.
		{"public address inside an IPv6 address", "::ffff:8.8.8.8 2002:808:808:: 64:ff9b::808:808 2606:4700::5efe:8.8.8.8", false},
		{"Azure virtual machine host", "168.63.129.16", false},
		{"not unicast", "100::1 4000::1 5f00::1 e000::1", false},
	} {
		t.Run(tc.what, func(t *testing.T) {
			for s := range strings.FieldsSeq(tc.addrs) {
				addr := netip.MustParseAddr(s)
				if err := guard.Check(addr); (err == nil) != tc.may || err != nil && !isBlocked(err) {
					t.Errorf("Check(%s) = %v, want it allowed: %v", s, err, tc.may)
				}
			}
		})
	}
	if err := guard.Check(netip.Addr{}); !isBlocked(err) {
		t.Errorf("Check of an invalid address = %v, want it blocked", err)
	}
}

func TestGuard_ControlBlocksUnparsableAddresses(t *testing.T) {
	guard := egress.NewGuard(netip.MustParsePrefix("10.0.0.0/8"))
	for _, tc := range []struct {
		network, address string
		may              bool
	}{
		{"tcp4", "1.1.1.1:443", true},
		{"tcp4", "1.1.1.1:80", true},
		{"tcp4", "1.1.1.1:1024", true},
		{"tcp4", "1.1.1.1:9101", true},
		{"tcp4", "1.1.1.1:1023", false},
		{"tcp4", "1.1.1.1:25", false},
		{"tcp4", "1.1.1.1:22", false},
		{"tcp6", "[2606:4700:4700::1111]:22", false},
		{"tcp4", "10.1.2.3:1", true},
		{"tcp6", "[2606:4700:4700::1111]:443", true},
		{"tcp4", "127.0.0.1:80", false},
		{"tcp6", "[::1]:80", false},
		{"tcp6", "[fe80::1%eth0]:80", false},
		{"tcp", "1.1.1.1:443", false},
		{"udp4", "1.1.1.1:443", false},
		{"udp4", "10.1.2.3:443", false},
		{"ip4:icmp", "1.1.1.1", false},
		{"unix", "/var/run/docker.sock", false},
		{"", "", false},
		{"tcp4", "", false},
		{"tcp4", "1.1.1.1", false},
		{"tcp4", ":80", false},
		{"tcp4", "1.1.1.1:http", false},
		{"tcp4", "example.com:80", false},
		{"tcp6", "2606:4700:4700::1111:443", false},
	} {
		if err := guard.Control(tc.network, tc.address, nil); (err == nil) != tc.may || err != nil && !isBlocked(err) {
			t.Errorf("Control(%q, %q) = %v, want it allowed: %v", tc.network, tc.address, err, tc.may)
		}
		if err := (egress.Unrestricted{}).Control(tc.network, tc.address, nil); err != nil {
			t.Errorf("unrestricted: Control(%q, %q) = %v", tc.network, tc.address, err)
		}
	}
}

func TestBlockedError_NamesTheSetting(t *testing.T) {
	for address, want := range map[string]string{
		"10.1.2.3:8080": "10.1.2.3 may not be called: it is no public address, or not a port of HTTP; " +
			"dispatch.allow_private can allow its range, for example 10.1.2.3/32, in the configuration of the router",
		"93.184.216.34:22": "93.184.216.34:22 may not be called: it is no public address, or not a port of HTTP; " +
			"dispatch.allow_private can allow its range, for example 93.184.216.34/32, in the configuration of the router",
		"[fe80::1%eth0]:80": "fe80::1%eth0 may not be called: it is no public address, or not a port of HTTP; " +
			"dispatch.allow_private can allow its range, for example fe80::1/128, in the configuration of the router",
	} {
		network := "tcp4"
		if address[0] == '[' {
			network = "tcp6"
		}
		if err := egress.NewGuard().Control(network, address, nil); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", address, err, want)
		}
	}
}

func TestGuard_AllowsRanges(t *testing.T) {
	for _, tc := range []struct{ allowed, in, out string }{
		{"10.1.0.0/16", "10.1.0.0 10.1.255.255", "10.0.255.255 10.2.0.0 127.0.0.1 ::ffff:10.1.0.1 2002:a01:1:: 64:ff9b::a01:1"},
		{"10.1.0.0/16 192.168.7.7/32", "10.1.2.3 192.168.7.7", "192.168.7.6 192.168.7.8 10.2.0.1"},
		{"127.0.0.1/32", "127.0.0.1", "127.0.0.2 ::1 0.0.0.0 ::ffff:127.0.0.1"},
		{"::1/128", "::1", ":: ::2 127.0.0.1"},
		{"fd00::/8", "fd00::1 fdff::1", "fc00::1 fe80::1"},
		{"fe80::/64", "fe80::1 fe80::1%eth0", "fe80:0:0:1::1 fe80:0:0:1::1%eth0"},
		{"64:ff9b::/96", "64:ff9b::a00:1", "10.0.0.1 64:ff9b:1::1"},
		{"::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "10.0.0.1 ::ffff:11.0.0.1"},
		{"0.0.0.0/0", "127.0.0.1 10.0.0.1", "::1 fd00::1 ::ffff:127.0.0.1"},
	} {
		t.Run(tc.allowed, func(t *testing.T) {
			var prefixes []netip.Prefix
			for s := range strings.FieldsSeq(tc.allowed) {
				prefixes = append(prefixes, netip.MustParsePrefix(s))
			}
			guard := egress.NewGuard(prefixes...)
			clear(prefixes) // the guard has a copy
			for s := range strings.FieldsSeq(tc.in) {
				if err := guard.Check(netip.MustParseAddr(s)); err != nil {
					t.Errorf("Check(%s) = %v, want it allowed", s, err)
				}
			}
			for s := range strings.FieldsSeq(tc.out) {
				if err := guard.Check(netip.MustParseAddr(s)); !isBlocked(err) {
					t.Errorf("Check(%s) = %v, want it blocked", s, err)
				}
			}
		})
	}
}

// specialRanges are the registries of special addresses as IANA publishes them
// (iana-ipv4-special-registry, iana-ipv6-special-registry, multicast spaces),
// and addresses that are public but serve internal data.
var specialRanges = func() (ranges []netip.Prefix) {
	for s := range strings.FieldsSeq(`
		0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
		192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24
		192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15
		198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32 168.63.129.16/32

		::1/128 ::/128 ::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32
		2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28
		2001:20::/28 2001:30::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7
		fe80::/10 fec0::/10 ff00::/8`) {
		ranges = append(ranges, netip.MustParsePrefix(s))
	}
	return ranges
}()

// globalUnicast is the range of IPv6 that is assigned for unicast.
var globalUnicast = netip.MustParsePrefix("2000::/3")

func isSpecial(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() ||
		addr.Is4In6() || addr.Is6() && !globalUnicast.Contains(addr) {
		return true
	}
	for _, p := range specialRanges {
		if p.Contains(addr) {
			return true
		}
	}
	if !addr.Is6() {
		return false
	}
	host := addr.StringExpanded()[len("0000:0000:0000:0000:"):]
	return strings.HasPrefix(host, "0000:5efe:") || strings.HasPrefix(host, "0200:5efe:") // ISATAP
}

// drawAddress draws any address, addresses in and next to special ranges, and
// addresses that embed one of IPv4.
func drawAddress() *rapid.Generator[netip.Addr] {
	return rapid.Custom(func(t *rapid.T) netip.Addr {
		v4 := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4")))
		v6 := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "v6")))
		near := rapid.SampledFrom(specialRanges).Draw(t, "range")
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			return v4
		case 1:
			return v6
		case 2: // anywhere in 2000::/3
			b := v6.As16()
			b[0] = b[0]&0x1f | 0x20
			return netip.AddrFrom16(b)
		case 3: // in a special range
			return fillPrefix(near, v4, v6)
		case 4: // on its border, or just outside
			edge := near.Addr()
			if rapid.Bool().Draw(t, "end") {
				edge = fillPrefix(near, netip.AddrFrom4([4]byte{255, 255, 255, 255}), netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"))
			}
			if next := edge.Next(); rapid.Bool().Draw(t, "after") && next.IsValid() {
				return next
			}
			if before := edge.Prev(); rapid.Bool().Draw(t, "before") && before.IsValid() {
				return before
			}
			return edge
		case 5: // ISATAP, or almost
			b := v6.As16()
			b[0] = b[0]&0x1f | 0x20
			copy(b[8:], []byte{rapid.SampledFrom([]byte{0, 1, 2, 3}).Draw(t, "bits"), 0, 0x5e, 0xfe})
			return netip.AddrFrom16(b)
		}
		return netip.AddrFrom16(v4.As16()) // ::ffff:0:0/96
	})
}

// fillPrefix returns an address of the prefix with its free bits from v4 or v6.
func fillPrefix(p netip.Prefix, v4, v6 netip.Addr) netip.Addr {
	fill := v6.AsSlice()
	if p.Addr().Is4() {
		fill = v4.AsSlice()
	}
	out := p.Addr().AsSlice()
	for i := range out {
		open := min(max((i+1)*8-p.Bits(), 0), 8) // low bits of this byte
		mask := byte(1<<open - 1)
		out[i] = out[i]&^mask | fill[i]&mask
	}
	addr, _ := netip.AddrFromSlice(out)
	return addr
}

func TestGuard_AgreesWithTheRegistries(t *testing.T) {
	guard := egress.NewGuard()
	rapid.Check(t, func(t *rapid.T) {
		addr := drawAddress().Draw(t, "addr")
		if got, want := guard.Check(addr) == nil, !isSpecial(addr); got != want {
			t.Fatalf("%s allowed: %v, want %v", addr, got, want)
		}
	})
}

// Allowed ranges add their own addresses and no others.
func TestGuard_AllowedRangesAreExact(t *testing.T) {
	closed := egress.NewGuard()
	rapid.Check(t, func(t *rapid.T) {
		in := drawAddress().Draw(t, "in")
		allowed, err := in.Prefix(rapid.IntRange(0, in.BitLen()).Draw(t, "bits"))
		if err != nil {
			t.Fatal(err)
		}
		guard := egress.NewGuard(allowed)
		addr := rapid.OneOf(drawAddress(), rapid.Just(in), rapid.Map(drawAddress(), func(a netip.Addr) netip.Addr { return fillPrefix(allowed, v4Of(a), v6Of(a)) })).Draw(t, "addr")
		if got, want := guard.Check(addr) == nil, allowed.Contains(addr) || closed.Check(addr) == nil; got != want {
			t.Fatalf("with %s allowed, %s allowed: %v, want %v", allowed, addr, got, want)
		}
	})
}

func v4Of(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

func v6Of(a netip.Addr) netip.Addr { return netip.AddrFrom16(a.As16()) }
