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

// Names answers name lookups in memory. The names in it exist, and no others do.
type Names struct {
	mu    sync.Mutex
	names map[string][]netip.Addr // lower case, without the last dot
}

// NewNames returns the names with their addresses, and panics where one is none.
func NewNames(names map[string][]string) *Names {
	n := &Names{names: map[string][]netip.Addr{}}
	for name, addrs := range names {
		n.Set(name, addrs...)
	}
	return n
}

// Set gives a name other addresses, from the next lookup on.
func (n *Names) Set(name string, addrs ...string) {
	parsed := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		parsed[i] = netip.MustParseAddr(a)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[strings.ToLower(name)] = parsed
}

// Resolver looks names up here. It still reads the hosts file first.
func (n *Names) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return &server{names: n}, nil
	}}
}

// server is the other side of a resolver's connection: what is written to it is
// a query, and the reply is there to be read at once. It is no net.PacketConn,
// so it is spoken to as over TCP, where each message comes after its length.
type server struct {
	net.Conn // nil: nothing else is asked for
	names    *Names
	reply    bytes.Buffer
}

func (s *server) Write(message []byte) (int, error) {
	if len(message) < 2 || int(binary.BigEndian.Uint16(message)) != len(message)-2 {
		return 0, errors.New("not one whole message")
	}
	reply, err := s.names.answer(message[2:])
	if err != nil {
		return 0, err
	}
	s.reply.Write(binary.BigEndian.AppendUint16(nil, uint16(len(reply))))
	s.reply.Write(reply)
	return len(message), nil
}

func (s *server) Read(b []byte) (int, error) { return s.reply.Read(b) }

// SetDeadline has nothing to do: nothing here takes time.
func (s *server) SetDeadline(time.Time) error { return nil }

// Close has nothing to do either.
func (s *server) Close() error { return nil }

// What of RFC 1035 is needed here.
const (
	headerLen = 12
	typeA     = 1
	typeAAAA  = 28
	noSuch    = 3
)

// answer makes the reply to a query of one question.
func (n *Names) answer(query []byte) ([]byte, error) {
	name, rest, err := question(query)
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
			records = append(records, 0xc0, headerLen)       // the name of the question
			records = append(records, rest[:4]...)           // its type and class
			records = append(records, 0, 0, 0, 0)            // good for no time at all
			records = append(records, 0, byte(a.BitLen()/8)) // length
			records = append(records, a.AsSlice()...)
		}
	}
	reply := append([]byte(nil), query[:len(query)-len(rest)+4]...)
	reply[2], reply[3] = 0x85, 0x80 // an answer, of an authority, recursion as asked
	if !exists {
		reply[3] |= noSuch
	}
	copy(reply[4:headerLen], []byte{0, 1, 0, byte(count), 0, 0, 0, 0})
	return append(reply, records...), nil
}

// question reads the name asked for; rest starts with the type.
func question(query []byte) (name string, rest []byte, err error) {
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
