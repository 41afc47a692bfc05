package fakellm

import (
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// jsonObject is a JSON object of a response or request.
type jsonObject = map[string]any

const (
	typeJSON = "application/json; charset=UTF-8"
	typeHTML = "text/html; charset=UTF-8"
)

// dripEvery is the interval of SlowDrip.
const dripEvery = 5 * time.Millisecond

// respond sends the response.
func (s *Server) respond(w http.ResponseWriter, hr *http.Request, r *Request, b *Behaviour) {
	ctx := hr.Context() // ends if the client disconnects or the test ends
	if b.hold != nil && !b.hold.waitReleased(ctx) {
		return
	}
	switch {
	case b.fault != nil:
		b.fault(ctx, w)
	case b.raw != nil:
		writeRaw(w, b.raw)
	case b.failure != nil:
		s.writeFailure(w, r, b.failure)
	case r.Operation == ListModels:
		writeJSON(w, http.StatusOK, s.protocol.encodeModels(s.cfg.Model))
	case r.Operation == GetModel:
		writeJSON(w, http.StatusOK, s.protocol.encodeModel(s.cfg.Model))
	default:
		s.writeReply(w, hr, r, b.reply)
	}
}

func (s *Server) writeFailure(w http.ResponseWriter, r *Request, f *errorSpec) {
	said := *f
	said.status = cmp.Or(f.status, s.protocol.defaultStatus(f))
	said.code = cmp.Or(f.code, said.status)
	if s.Protocol == OpenAI && said.retryAfter == "" && said.retryDelay != "" {
		d, _ := time.ParseDuration(said.retryDelay)
		said.retryAfter = strconv.Itoa(int(d.Seconds()))
	}
	if said.retryAfter != "" {
		w.Header().Set("Retry-After", said.retryAfter)
	}
	if said.echo {
		said.message = fmt.Sprintf("Not understood: %s (key %s)", r.User, r.Key)
	}
	writeJSON(w, said.status, s.protocol.encodeFailure(r, &said))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := strictjson.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakellm: encode a reply: %v", err)) // a bug of this package; the client sees the connection close
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func writeRaw(w http.ResponseWriter, b *rawResponse) {
	if b.contentType != "" {
		w.Header().Set("Content-Type", b.contentType)
	}
	if b.location != "" {
		w.Header().Set("Location", b.location)
	}
	w.WriteHeader(b.status)
	_, _ = io.WriteString(w, b.body)
}

func (s *Server) writeReply(w http.ResponseWriter, hr *http.Request, r *Request, b replySpec) {
	if b.filler > 0 {
		b.texts = []string{strings.Repeat("a", b.filler)}
	}
	if !b.compressed || !strings.Contains(hr.Header.Get("Accept-Encoding"), "gzip") {
		writeJSON(w, http.StatusOK, s.protocol.encodeReply(r, &b))
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	defer func() { _ = zip.Close() }()
	writeJSON(gzipWriter{w, zip}, http.StatusOK, s.protocol.encodeReply(r, &b))
}

// gzipWriter compresses a response body.
type gzipWriter struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (z gzipWriter) Write(p []byte) (int, error) { return z.zip.Write(p) }

// partialResponse is the start of a longer response.
const partialResponse = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"id\":\"cut\",\"candidates\":[{\"content\":{\"parts\":[{"

// closeConnection writes raw bytes and closes or resets the connection.
func closeConnection(text string, reset bool) connectionFault {
	return func(_ context.Context, w http.ResponseWriter) {
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
}

func sendNothing(ctx context.Context, _ http.ResponseWriter) { <-ctx.Done() }

func sendHeaders(ctx context.Context, w http.ResponseWriter) {
	startBody(w)
	<-ctx.Done()
}

// dripBody sends spaces, which are valid at the start of JSON.
func dripBody(ctx context.Context, w http.ResponseWriter) {
	startBody(w)
	tick := time.NewTicker(dripEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func startBody(w http.ResponseWriter) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
}
