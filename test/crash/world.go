package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// world is one router after the other on the same data directory, and everybody
// who deals with them.
type world struct {
	place   place
	config  string // file
	ledger  *ledger
	dice    *dice
	door    *door
	agents  *agents
	callers *callers
	group   *run.Group

	router     *process        // nil when it is down
	starts     []time.Duration // until it listened
	complaints map[string]int  // errors the routers logged
	disorder   []string        // what went wrong at a stop
}

// newWorld starts the agents; close ends everything.
func newWorld(ctx context.Context, at place, seed uint64) (*world, error) {
	w := &world{
		place: at, ledger: newLedger(), dice: newDice(seed), door: newDoor(), group: run.New(ctx),
		complaints: map[string]int{},
	}
	w.callers = &callers{ledger: w.ledger, door: w.door}
	var err error
	if w.agents, err = startAgents(ctx, w.group, w.ledger, w.dice, w.door); err == nil {
		w.config, err = writeConfig(at.dir, w.agents.base)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) close() error {
	err := w.crash()
	w.group.Stop(nil)
	return errors.Join(err, w.group.Wait())
}

// up starts a router.
func (w *world) up(ctx context.Context) error {
	p, err := start(ctx, w.place.binary, w.config)
	if err != nil {
		return err
	}
	w.router = p
	w.starts = append(w.starts, p.log.marks[markListening].at.Sub(p.began))
	w.door.open(p.addr())
	return nil
}

// crash kills the router, if there is one.
func (w *world) crash() error { return w.down((*process).kill) }

// stop ends the router as its operator would. How that goes is a finding.
func (w *world) stop(ctx context.Context) {
	if err := w.down(func(p *process) error { return p.stop(ctx) }); err != nil {
		w.disorder = append(w.disorder, err.Error())
	}
}

// findings are what the ledger has to say, the audit log, and the operator.
func (w *world) findings(ctx context.Context) []finding {
	audit := w.verify(ctx)
	return append(w.ledger.check(), audit, finding{what: "a router that did not stop in good order", wrong: w.disorder})
}

func (w *world) down(end func(*process) error) error {
	if w.router == nil {
		return nil
	}
	err := end(w.router)
	w.door.shut()
	for message, times := range w.router.log.complaints() {
		w.complaints[message] += times
	}
	w.router = nil
	return err
}

// lookers is how many callers ask for answers at a time.
const lookers = 16

// look asks for the requests, each once.
func (w *world) look(ctx context.Context, ids []string) {
	run.ForEach(ctx, lookers, len(ids), func(ctx context.Context, i int) { w.callers.look(ctx, ids[i]) })
}

// settle asks for what is open until nothing is, or the time is up.
func (w *world) settle(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		open := w.ledger.open()
		if len(open) == 0 {
			return
		}
		w.look(ctx, open)
		if !pause(ctx, 50*time.Millisecond) {
			return
		}
	}
}

// listenAll has every request whose end no stream of events has told yet tell it.
func (w *world) listenAll(ctx context.Context) {
	ids := w.ledger.unheard()
	run.ForEach(ctx, lookers, len(ids), func(ctx context.Context, i int) {
		ctx, cancel := context.WithTimeout(ctx, ioTimeout)
		defer cancel()
		w.callers.listen(ctx, ids[i])
	})
}

// verify stops the router, if it is up, and has the audit log verified.
func (w *world) verify(ctx context.Context) finding {
	w.stop(ctx)
	f := finding{what: "the audit log does not verify"}
	if said, err := verifyAudit(ctx, w.place.binary, dataDir(filepath.Dir(w.config))); err != nil {
		f.wrong = append(f.wrong, fmt.Sprintf("%v: %s", err, said))
	}
	return f
}
