package fakellm

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// object is one of a wire's JSON objects.
type object = map[string]any

const (
	typeJSON = "application/json; charset=UTF-8"
	typeHTML = "text/html; charset=UTF-8"
)

// dripEvery is the pause between two bytes of a Drip.
const dripEvery = 5 * time.Millisecond

// do answers the request as b says.
func (s *Server) do(w http.ResponseWriter, hr *http.Request, r *Request, b *Behaviour) {
	gone := hr.Context().Done()
	if b.hold != nil && !b.hold.wait(gone, s.done) {
		return
	}
	switch {
	case b.fault != noFault:
		s.fail(w, gone, b.fault)
	case b.raw != nil:
		writeRaw(w, b.raw)
	case b.failure != nil:
		s.writeFailure(w, r, b.failure)
	case r.Operation == ListModels:
		writeJSON(w, http.StatusOK, s.wire.models(s.cfg.Model))
	case r.Operation == GetModel:
		writeJSON(w, http.StatusOK, s.wire.model(s.cfg.Model))
	default:
		s.writeReply(w, hr, r, b.reply)
	}
}

func (s *Server) writeFailure(w http.ResponseWriter, r *Request, f *failure) {
	said := *f
	said.status = cmp.Or(f.status, s.wire.status(f))
	said.code = cmp.Or(f.code, said.status)
	if s.Wire == OpenAI && said.retryAfter == "" && said.retryDelay != "" {
		d, _ := time.ParseDuration(said.retryDelay)
		said.retryAfter = strconv.Itoa(int(d.Seconds()))
	}
	if said.retryAfter != "" {
		w.Header().Set("Retry-After", said.retryAfter)
	}
	if said.echo {
		said.message = fmt.Sprintf("Not understood: %s (key %s)", r.User, r.Key)
	}
	writeJSON(w, said.status, s.wire.failure(r, &said))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := strictjson.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakellm: encode a reply: %v", err)) // a slip of this package; the client sees the connection end
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func writeRaw(w http.ResponseWriter, b *raw) {
	if b.contentType != "" {
		w.Header().Set("Content-Type", b.contentType)
	}
	if b.location != "" {
		w.Header().Set("Location", b.location)
	}
	w.WriteHeader(b.status)
	_, _ = io.WriteString(w, b.body)
}

func (s *Server) writeReply(w http.ResponseWriter, hr *http.Request, r *Request, b reply) {
	if b.filler > 0 {
		b.texts = []string{strings.Repeat("a", b.filler)}
	}
	if !b.compressed || !strings.Contains(hr.Header.Get("Accept-Encoding"), "gzip") {
		writeJSON(w, http.StatusOK, s.wire.reply(r, &b))
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one there is
	defer func() { _ = zip.Close() }()
	writeJSON(zipped{w, zip}, http.StatusOK, s.wire.reply(r, &b))
}

// zipped compresses the body of a response.
type zipped struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (z zipped) Write(p []byte) (int, error) { return z.zip.Write(p) }

// fail does what goes wrong below HTTP.
func (s *Server) fail(w http.ResponseWriter, gone <-chan struct{}, f fault) {
	switch f {
	case faultReset:
		cut(w, "", true)
	case faultEOF:
		cut(w, "", false)
	case faultMidway:
		cut(w, half, true)
	case faultCut:
		cut(w, half, false)
	case faultMute:
		s.linger(gone)
	case faultSilent:
		startBody(w)
		s.linger(gone)
	case faultDrip:
		startBody(w)
		s.drip(w, gone)
	}
}

// half is the beginning of a response that promises more.
const half = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"id\":\"cut\",\"candidates\":[{\"content\":{\"parts\":[{"

// cut writes some bytes below HTTP and ends the connection.
func cut(w http.ResponseWriter, text string, reset bool) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(fmt.Sprintf("fakellm: take over a connection: %v", err))
	}
	defer func() { _ = conn.Close() }()
	_, _ = buf.WriteString(text)
	_ = buf.Flush()
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // Close sends RST and not FIN
	}
}

func startBody(w http.ResponseWriter) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
}

// linger waits for the client to go away, or the test to end.
func (s *Server) linger(gone <-chan struct{}) {
	select {
	case <-gone:
	case <-s.done:
	}
}

// drip sends white space, which JSON may begin with, for as long as it is heard.
func (s *Server) drip(w http.ResponseWriter, gone <-chan struct{}) {
	tick := time.NewTicker(dripEvery)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return
		case <-s.done:
			return
		case <-tick.C:
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}
