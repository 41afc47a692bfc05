package redact

import (
	"net/netip"
	"strings"
)

// findIPs appends IPv4 and IPv6 addresses with their prefix length. It excludes
// similar notations: versions, section numbers, times, MAC addresses, scopes
// and slices in code.
func findIPs(text string, found []span) []span {
	for i := strings.IndexByte(text, ':'); i >= 0; {
		start, end, next := findIPv6(text, i)
		if end > 0 {
			found = append(found, span{start: start, end: end})
		}
		more := strings.IndexByte(text[next:], ':')
		if more < 0 {
			break
		}
		i = next + more
	}
	for i := nextDigit(text, 0); i < len(text); i = nextDigit(text, i) {
		end := ipv4End(text, i)
		if end == 0 || !isAddress(text, i, end) {
			i = max(pastDigits(text, i), end)
			continue
		}
		end = pastPrefix(text, end, 32)
		found = append(found, span{start: i, end: end})
		i = end
	}
	return found
}

// ipv4End returns the end of the four numbers that start at i, or 0.
func ipv4End(text string, i int) int {
	if before := byteAt(text, i-1); isWordOrDigit(before) || before == '.' && isWordOrDigit(byteAt(text, i-2)) || before == '-' && isWordOrDigit(byteAt(text, i-2)) {
		return 0
	}
	for part := range 4 {
		end := pastDigits(text, i)
		if n := end - i; n == 0 || n > 3 || n > 1 && text[i] == '0' || parseDecimal(text[i:end]) > 255 {
			return 0
		}
		if part == 3 {
			i = end
			break
		}
		if byteAt(text, end) != '.' {
			return 0
		}
		i = end + 1
	}
	if !endsNumber(text, i) {
		return 0
	}
	return i
}

// isAddress distinguishes an address from a version or section number.
func isAddress(text string, start, end int) bool {
	if b := byteAt(text, end); (b == '-' || b == '+') && isLetter(byteAt(text, end+1)) {
		return false // 1.2.3.4-rc1
	}
	return hintBefore(text, start, versionHint) != hintNegative
}

func versionHint(word string) wordHint {
	switch word {
	case "ip", "ips", "ipv4", "address", "addresses", "host", "server", "from", "to", "at", "ping", "subnet", "dns", "endereço", "dirección":
		return hintPositive
	case "version", "versions", "ver", "v", "versão", "versión", "release", "build", "upgrade", "section", "sec", "§", "chapter", "clause",
		"paragraph", "figure", "table", "appendix", "oid", "driver", "firmware", "requirement":
		return hintNegative
	}
	return hintNone
}

// pastPrefix returns the end of a prefix length after an address.
func pastPrefix(text string, i, most int) int {
	if byteAt(text, i) != '/' {
		return i
	}
	end := pastDigits(text, i+1)
	if n := end - i - 1; n == 0 || n > 3 || parseDecimal(text[i+1:end]) > most || isWordOrDigit(byteAt(text, end)) {
		return i
	}
	return end
}

// findIPv6 parses the address around the colon at i. end is 0 if there is none;
// the search continues at next.
func findIPv6(text string, i int) (start, end, next int) {
	start = i
	for start > 0 && i-start < 5 && isHex(text[start-1]) {
		start--
	}
	end = i
	colons, double := 0, false
	for end < len(text) && (text[end] == ':' || text[end] == '.' || isHex(text[end])) {
		if text[end] == ':' {
			colons++
			double = double || byteAt(text, end+1) == ':'
		}
		end++
	}
	next = end
	for end > start && (text[end-1] == '.' || text[end-1] == ':' && byteAt(text, end-2) != ':') {
		end--
	}
	if colons < 2 || end-start > 45 || !double && colons < 6 {
		return 0, 0, next
	}
	if isWordOrDigit(byteAt(text, start-1)) || isWordOrDigit(byteAt(text, end)) || isSlice(text, start) {
		return 0, 0, next
	}
	if nextDigit(text[:end], start) == end && (end-start > 2 || byteAt(text, end) != '/') {
		return 0, 0, next // std::dead::beef, or "::" alone
	}
	if _, err := netip.ParseAddr(text[start:end]); err != nil {
		return 0, 0, next
	}
	end = pastPrefix(text, pastZone(text, end), 128)
	if text[start:end] == "::" {
		return 0, 0, next
	}
	return start, end, max(next, end)
}

// isSlice reports whether the text is a slice expression: x[1::2].
func isSlice(text string, start int) bool {
	b := byteAt(text, start-2)
	return byteAt(text, start-1) == '[' && (isWordOrDigit(b) || b == ']' || b == ')')
}

// pastZone returns the end of a zone after an address: fe80::1%eth0.
func pastZone(text string, i int) int {
	if byteAt(text, i) != '%' || !isWordOrDigit(byteAt(text, i+1)) {
		return i
	}
	for i++; isWordOrDigit(byteAt(text, i)); i++ {
	}
	return i
}

func isHex(b byte) bool { return isDigit(b) || b|0x20-'a' < 6 }
