package policy

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// isPrivateHost reports whether a host is this machine, its network, or the metadata
// service of a cloud: by address in any notation that resolvers accept, or by name.
func isPrivateHost(host string) bool {
	if addr, ok := parseAddress(host); ok {
		addr = addr.Unmap()
		return addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() || addr.IsMulticast() ||
			sharedSpace.Contains(addr)
	}
	labels := strings.Split(host, ".")
	if len(labels) == 1 { // a name of the local network
		return true
	}
	last := labels[len(labels)-1]
	if slices.Contains([]string{"localhost", "local", "internal", "lan", "intranet", "corp", "home", "arpa", "cluster"}, last) {
		return true
	}
	// Services that resolve 10.0.0.5.nip.io to the address in the name.
	domain := strings.Join(labels[max(0, len(labels)-2):], ".")
	return slices.Contains([]string{"nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me"}, domain)
}

var sharedSpace = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598, also metadata services

// parseAddress parses an IP address, also in the notations of inet_aton: 2130706433,
// 0x7f.1, 0177.0.0.1.
func parseAddress(host string) (netip.Addr, bool) {
	host = strings.Trim(host, "[]")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.WithZone(""), true
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil || strings.Contains(part, "_") {
			return netip.Addr{}, false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return netip.Addr{}, false
			}
			value |= n << (8 * (3 - i))
			continue
		}
		if n >= 1<<(8*(4-i)) {
			return netip.Addr{}, false
		}
		value |= n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$`)

// isHostName reports whether a text has the form of a host name or an address.
func isHostName(text string) bool {
	if _, ok := parseAddress(text); ok {
		return true
	}
	return len(text) <= 253 && hostName.MatchString(strings.TrimSuffix(text, "."))
}

// matchesHost reports whether a pattern selects a host: the host itself, or *.host for all
// hosts below it.
func matchesHost(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*."); ok {
		return strings.HasSuffix(host, "."+suffix)
	}
	return pattern == host || pattern == "*"
}

func matchesAnyHost(patterns []string, host string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesHost(pattern, host) })
}

// isRandom reports whether a word looks like random or encoded data: long, with digits, and
// with many changes between digits, lower case and upper case.
func isRandom(word string, minLength, minChanges int) bool {
	if len(word) < minLength {
		return false
	}
	const (
		digit = iota + 1
		lower
		upper
	)
	changes, digits, last := 0, 0, 0
	for i := range len(word) {
		class := 0
		switch b := word[i]; {
		case b >= '0' && b <= '9':
			class = digit
			digits++
		case b >= 'a' && b <= 'z':
			class = lower
		case b >= 'A' && b <= 'Z':
			class = upper
		}
		if last != 0 && class != last {
			changes++
		}
		last = class
	}
	return digits >= 2 && changes >= minChanges || changes >= len(word)/3 && changes >= 2*minChanges
}
