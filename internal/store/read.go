package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	pageMessages = 10_240
	pageBytes    = 4 << 20
)

// directGet is a read that the engine answers from the stream, without a consumer:
// there is no state on either side, and a walk continues after a restart of the
// engine.
type directGet struct {
	Seq       uint64     `json:"seq,omitempty"`
	LastFor   string     `json:"last_by_subj,omitempty"`
	NextFor   string     `json:"next_by_subj,omitempty"`
	Batch     int        `json:"batch,omitempty"`
	MaxBytes  int        `json:"max_bytes,omitempty"`
	StartTime *time.Time `json:"start_time,omitempty"`
}

// readMessage returns one message, or ErrNotFound.
func (s *Store) readMessage(ctx context.Context, stream string, q directGet) (Message, error) {
	body, err := strictjson.Marshal(q)
	if err != nil {
		return Message{}, err
	}
	var m Message
	err = s.retry(ctx, "read", func(ctx context.Context) error {
		conn, err := s.engine.reader(stream)
		if err != nil {
			return err
		}
		if s.cfg.Replication > 1 {
			m, err = readFromLeader(ctx, conn, stream, body)
			return err
		}
		reply, err := conn.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream, body)
		if err != nil {
			return err
		}
		m, err = parseMessage(reply)
		return err
	})
	return m, err
}

// messageWalk is the state of a walk between two pages.
type messageWalk struct {
	store       *Store
	stream      string
	next        directGet // the next page
	fn          func(Message) error
	more        bool // the last page reported more messages
	interrupted bool // the last page was not read to its end
}

// walkMessages calls fn for every message from q.Seq or q.StartTime on that matches
// q.NextFor, in order, up to the end at that time.
func (s *Store) walkMessages(ctx context.Context, stream string, q directGet, fn func(Message) error) error {
	last, err := lastOnLeader(ctx, s, stream, q.NextFor)
	if err != nil {
		return err
	}
	q.Batch, q.MaxBytes = cmp.Or(q.Batch, pageMessages), pageBytes
	w := messageWalk{store: s, stream: stream, next: q, fn: fn}
	for {
		err := w.walkPage(ctx)
		if err == nil && !w.more && w.next.Seq <= last {
			err = w.walkOnLeader(ctx)
		}
		if err != nil || !w.more {
			return ignoreStop(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// walkPage reads a page and calls fn for its messages. If the page before reported more
// messages and there are none, it skips the damage that stopped the engine.
func (w *messageWalk) walkPage(ctx context.Context) error {
	promised := w.more && !w.interrupted
	page, err := w.readPage(ctx)
	if err != nil {
		return err
	}
	if promised && len(page) == 0 && w.store.cfg.Replication == 1 && !isBlobStream(w.stream) { // a blob that is replaced meanwhile is not damage
		next, err := w.store.skipDamage(ctx, w.stream, w.next)
		if err != nil {
			return err
		}
		if next > 0 {
			w.next.Seq, w.more = next, true
		}
	}
	for _, raw := range page {
		m, err := parseMessage(raw)
		if err != nil {
			return err
		}
		if err := w.deliver(m); err != nil {
			return err
		}
	}
	return nil
}

// readPage reads the messages of a page. If an attempt ends within the page, it returns
// those that were read: a retry must not begin the page again, because it may need more
// time than an attempt has.
func (w *messageWalk) readPage(ctx context.Context) (page []*nats.Msg, err error) {
	err = w.store.retry(ctx, "read", func(attempt context.Context) (err error) {
		page, w.more, err = w.store.fetchPage(attempt, w.stream, w.next)
		if w.interrupted = err != nil && len(page) > 0 && ctx.Err() == nil; w.interrupted {
			w.more, err = true, nil
		}
		return err
	})
	return page, err
}

// walkOnLeader reads the next message from the leader, if there is one, because the server
// that returned the last page may be behind it.
func (w *messageWalk) walkOnLeader(ctx context.Context) error {
	m, err := readNextFromLeader(ctx, w.store, w.stream, w.next)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	w.more = true
	return w.deliver(m)
}

// deliver calls fn, and continues the walk behind the message.
func (w *messageWalk) deliver(m Message) error {
	w.next.Seq, w.next.StartTime = m.Seq+1, nil
	return w.fn(m)
}

// skipDamage finds the first readable message behind a place where the engine stops
// although it has promised more messages, because a file is damaged. The messages in between
// are lost, which is logged. It returns 0 if there is none, because the rest is damaged, or
// because the messages have expired or were deleted since.
func (s *Store) skipDamage(ctx context.Context, stream string, q directGet) (next uint64, err error) {
	if ended, err := hasEnded(ctx, s, stream, q); err != nil || ended {
		return 0, err
	}
	readable := func(seq uint64) bool {
		if err == nil {
			_, err = s.readMessage(ctx, stream, directGet{Seq: seq, NextFor: q.NextFor})
		}
		found := err == nil
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return found
	}
	bad, good := q.Seq, uint64(0)
	for step := uint64(1); step < 1<<40 && good == 0 && err == nil; step *= 2 {
		if readable(q.Seq + step) {
			good = q.Seq + step
		} else {
			bad = q.Seq + step
		}
	}
	for good-bad > 1 && good > 0 && err == nil {
		if middle := bad + (good-bad)/2; readable(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	switch {
	case err != nil: // the store is not available, or the context has ended: this is not damage
		return 0, err
	case good == 0:
		s.cfg.Logger.Error("store: damaged, the rest cannot be read", "stream", stream, "from", q.Seq)
	default:
		s.cfg.Logger.Error("store: damaged, what cannot be read is skipped", "stream", stream, "from", q.Seq, "to", good)
	}
	return good, nil
}

// hasEnded reports whether no message from q.Seq on matches q.NextFor, damaged or not.
func hasEnded(ctx context.Context, s *Store, stream string, q directGet) (bool, error) {
	filter := cmp.Or(q.NextFor, ">")
	last, err := s.readMessage(ctx, stream, directGet{LastFor: filter})
	if !errors.Is(err, ErrNotFound) {
		return err == nil && last.Seq < q.Seq, err
	}
	// There is none, or the last one is damaged: then the engine still counts it.
	handle, err := existingStream(ctx, s, stream)
	if err != nil {
		return false, err
	}
	var counted map[string]uint64
	err = s.retry(ctx, "info", func(ctx context.Context) error {
		info, err := handle.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err == nil {
			counted = info.State.Subjects
		}
		return err
	})
	return len(counted) == 0, err
}

// fetchPage fetches the next messages; more reports whether there are others behind
// them. If the connection or ctx ends before the page, it returns the error with what it has
// received.
func (s *Store) fetchPage(ctx context.Context, stream string, q directGet) (page []*nats.Msg, more bool, err error) {
	body, err := strictjson.Marshal(q)
	if err != nil {
		return nil, false, err
	}
	conn, err := s.engine.reader(stream)
	if err != nil {
		return nil, false, err
	}
	inbox := conn.NewInbox() // not NewRespInbox, with which the connection receives every answer twice
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	_ = sub.SetPendingLimits(-1, -1) // the page is bounded by the request
	if err := conn.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, false, err
	}
	for {
		raw, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return page, false, err
		}
		switch status := raw.Header.Get("Status"); {
		case status == "204" && len(raw.Data) == 0: // end of the page
			pending, _ := strconv.ParseUint(raw.Header.Get("Nats-Num-Pending"), 10, 64)
			return page, pending > 0 && len(page) > 0, nil
		case status == "404" && len(raw.Data) == 0:
			return page, false, nil
		case status != "" && len(raw.Data) == 0:
			return nil, false, statusError(raw)
		}
		page = append(page, raw)
	}
}

// parseMessage returns the message in an answer of the engine.
func parseMessage(raw *nats.Msg) (Message, error) {
	if raw.Header.Get("Status") != "" && len(raw.Data) == 0 {
		return Message{}, statusError(raw)
	}
	seq, err := strconv.ParseUint(raw.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return Message{}, fmt.Errorf("%w: an answer without a sequence", ErrUnavailable)
	}
	at, err := time.Parse(time.RFC3339Nano, raw.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return Message{}, fmt.Errorf("%w: an answer without a time", ErrUnavailable)
	}
	return Message{Seq: seq, At: at, Subject: raw.Header.Get(jetstream.SubjectHeader), Data: raw.Data, Origin: originOf(raw.Header), header: raw.Header}, nil
}

// statusError returns the error of an answer without a message.
func statusError(raw *nats.Msg) error {
	switch status := raw.Header.Get("Status"); status {
	case "404":
		return ErrNotFound
	case "503":
		return fmt.Errorf("%w: no responders", ErrUnavailable)
	default:
		return fmt.Errorf("%w: answer %s %s", ErrUnavailable, status, raw.Header.Get("Description"))
	}
}

// Of a stream that several servers keep, any of them answers a direct read, and may not
// have the last write yet. Single messages are therefore read from the leader, and a
// walk compares its end with the leader.

// noMessageCode is the engine's code for a message that does not exist.
const noMessageCode = 404

// readFromLeader returns one message as the leader of the stream has it, or ErrNotFound.
func readFromLeader(ctx context.Context, conn *nats.Conn, stream string, body []byte) (Message, error) {
	reply, err := conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, body)
	if err != nil {
		return Message{}, err
	}
	var answer struct {
		Error *struct {
			Code        int    `json:"code"`
			Description string `json:"description"`
		} `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := strictjson.UnmarshalAllowUnknown(reply.Data, &answer); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if answer.Error != nil {
		if answer.Error.Code == noMessageCode {
			return Message{}, ErrNotFound
		}
		return Message{}, fmt.Errorf("%w: answer %d %s", ErrUnavailable, answer.Error.Code, answer.Error.Description)
	}
	m := Message{Seq: answer.Message.Seq, At: answer.Message.Time, Subject: answer.Message.Subject, Data: answer.Message.Data, header: nats.Header{}}
	if len(answer.Message.Header) > 0 {
		if m.header, err = nats.DecodeHeadersMsg(answer.Message.Header); err != nil {
			return Message{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return m, nil
}

// lastOnLeader returns the sequence of the last message that matches the filter as the
// leader has it, 0 if there is none, or if one server alone keeps the streams.
func lastOnLeader(ctx context.Context, s *Store, stream, filter string) (uint64, error) {
	if s.cfg.Replication == 1 {
		return 0, nil
	}
	m, err := s.readMessage(ctx, stream, directGet{LastFor: cmp.Or(filter, ">")})
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return m.Seq, err
}

// readNextFromLeader returns the first message of a walk that the leader has, although
// the server that answered the walk did not, or ErrNotFound.
func readNextFromLeader(ctx context.Context, s *Store, stream string, walk directGet) (Message, error) {
	next := directGet{NextFor: cmp.Or(walk.NextFor, ">"), Seq: walk.Seq, StartTime: walk.StartTime}
	if next.StartTime == nil {
		next.Seq = max(next.Seq, 1)
	}
	return s.readMessage(ctx, stream, next)
}
