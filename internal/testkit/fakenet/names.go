package fakenet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Names resolves names in memory. Other names do not exist.
type Names struct {
	mu    sync.Mutex
	names map[string][]netip.Addr // in lower case, without the final dot
}

// NewNames returns the names with their addresses. It panics if an address is
// invalid.
func NewNames(names map[string][]string) *Names {
	n := &Names{names: map[string][]netip.Addr{}}
	for name, addrs := range names {
		n.Set(name, addrs...)
	}
	return n
}

// Set replaces the addresses of a name for later lookups.
func (n *Names) Set(name string, addrs ...string) {
	parsed := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		parsed[i] = netip.MustParseAddr(a)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[strings.ToLower(name)] = parsed
}

// Resolver returns a resolver for the names. It reads the hosts file first.
func (n *Names) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return &dnsConn{names: n}, nil
	}}
}

// dnsConn is the server side of a resolver's connection: a written query makes
// its reply readable. It is not a net.PacketConn, so the resolver uses the TCP
// format with length prefixes.
type dnsConn struct {
	net.Conn // nil: other methods are not called
	names    *Names
	reply    bytes.Buffer
}

func (s *dnsConn) Write(message []byte) (int, error) {
	if len(message) < 2 || int(binary.BigEndian.Uint16(message)) != len(message)-2 {
		return 0, errors.New("not one whole message")
	}
	reply, err := s.names.answerQuery(message[2:])
	if err != nil {
		return 0, err
	}
	s.reply.Write(binary.BigEndian.AppendUint16(nil, uint16(len(reply))))
	s.reply.Write(reply)
	return len(message), nil
}

func (s *dnsConn) Read(b []byte) (int, error) { return s.reply.Read(b) }

// SetDeadline does nothing, because nothing blocks.
func (s *dnsConn) SetDeadline(time.Time) error { return nil }

// Close does nothing.
func (s *dnsConn) Close() error { return nil }

// Constants of RFC 1035.
const (
	headerLen = 12
	typeA     = 1
	typeAAAA  = 28
	noSuch    = 3
)

// answerQuery returns the reply to a query with one question.
func (n *Names) answerQuery(query []byte) ([]byte, error) {
	name, rest, err := parseQuestion(query)
	if err != nil {
		return nil, err
	}
	kind := binary.BigEndian.Uint16(rest)
	n.mu.Lock()
	addrs, exists := n.names[strings.ToLower(name)]
	n.mu.Unlock()
	var records []byte
	count := 0
	for _, a := range addrs {
		if kind == typeA && a.Is4() || kind == typeAAAA && a.Is6() {
			count++
			records = append(records, 0xc0, headerLen)       // pointer to the name in the question
			records = append(records, rest[:4]...)           // type and class
			records = append(records, 0, 0, 0, 0)            // TTL 0
			records = append(records, 0, byte(a.BitLen()/8)) // length
			records = append(records, a.AsSlice()...)
		}
	}
	reply := append([]byte(nil), query[:len(query)-len(rest)+4]...)
	reply[2], reply[3] = 0x85, 0x80 // authoritative response; recursion desired and available
	if !exists {
		reply[3] |= noSuch
	}
	copy(reply[4:headerLen], []byte{0, 1, 0, byte(count), 0, 0, 0, 0})
	return append(reply, records...), nil
}

// parseQuestion parses the name in the question; rest starts with its type.
func parseQuestion(query []byte) (name string, rest []byte, err error) {
	if len(query) < headerLen {
		return "", nil, errors.New("the header is cut short")
	}
	var labels []string
	for rest = query[headerLen:]; len(rest) > 0 && len(rest) > int(rest[0]); {
		label := rest[1 : 1+rest[0]]
		if rest = rest[1+len(label):]; len(label) > 0 {
			labels = append(labels, string(label))
			continue
		}
		if len(rest) < 4 {
			break
		}
		return strings.Join(labels, "."), rest, nil
	}
	return "", nil, errors.New("the question is cut short")
}
