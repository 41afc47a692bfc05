package httpserver

import (
	"sync"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/quota"
)

// Class is an admission class: each has a semaphore that bounds how many of its
// requests run at a time. Requests that wait for each other must not share a
// class, because a full class must still admit the requests that empty it.
type Class int

// The admission classes.
const (
	ClassWork       Class = iota // requests that may take minutes: Config.MaxInFlight
	ClassCompletion              // requests that end ClassWork requests: results, cancellations
	ClassHeavy                   // requests that need much memory and CPU: one at a time per caller
	ClassStream                  // readers of events, idle for a long time: Config.MaxReaders
	ClassUnlimited               // always admitted

	limitedClasses = ClassUnlimited // the classes before it have a semaphore
)

// maxHeavy bounds ClassHeavy: parsing a registry of 1 MiB takes about 50 MiB.
const maxHeavy = 3

// maxCompletions bounds ClassCompletion. Each request may hold a result of 4 MiB.
const maxCompletions = 128

// semaphore is a counting semaphore that never blocks.
type semaphore struct {
	taken atomic.Int64
	limit int64
}

// admissionController sheds load: it admits requests up to the limit of their
// class, and keeps a reserve from tenants that hold most permits.
type admissionController struct {
	classes [limitedClasses]semaphore
	shared  bool // there are several callers
	shares  [limitedClasses]permitShares[quota.Owner]
	heavy   permitShares[limits.Principal] // of ClassHeavy
	meter   Meter
}

func newAdmissionController(cfg *Config, shared bool) *admissionController {
	a := &admissionController{shared: shared, meter: cfg.Meter}
	a.classes[ClassWork].limit = int64(cfg.MaxInFlight)
	a.classes[ClassCompletion].limit = maxCompletions
	a.classes[ClassHeavy].limit = maxHeavy
	a.classes[ClassStream].limit = int64(cfg.MaxReaders)
	return a
}

// errOverloaded sheds a request.
var errOverloaded = &contract.Error{Code: contract.CodeOverloaded, Message: "too many requests are in flight; try again later"}

// errOneAtATime rejects a request of ClassHeavy.
var errOneAtATime = &contract.Error{Code: contract.CodeRateLimited, Message: "a registry of this caller is being checked; try again later"}

// isFull reports whether the class has no permit left. The check runs before any
// other work on a request, so that shedding it is cheap.
func (a *admissionController) isFull(class Class) bool {
	return class != ClassUnlimited && a.classes[class].taken.Load() >= a.classes[class].limit
}

// admissionPermit is held while a request runs. The zero permit holds nothing.
type admissionPermit struct {
	controller *admissionController // nil once released
	class      Class
	counted    bool // against the shares of owner, and in ClassHeavy of principal
	owner      quota.Owner
	principal  limits.Principal
}

// acquire returns a permit of the class, or an error if there is none for the caller.
func (a *admissionController) acquire(class Class, caller *contract.Caller) (admissionPermit, error) {
	if class == ClassUnlimited {
		return admissionPermit{}, nil
	}
	p := admissionPermit{controller: a, class: class}
	sem := &a.classes[class]
	taken := sem.taken.Add(1)
	if taken > sem.limit {
		sem.taken.Add(-1)
		return admissionPermit{}, errOverloaded
	}
	if err := a.acquireShare(&p, taken, caller); err != nil {
		sem.taken.Add(-1)
		return admissionPermit{}, err
	}
	if class == ClassWork {
		a.meter.AddInFlight(1)
	}
	return p, nil
}

// acquireShare counts the permit, the taken-th of its class, against the share of the
// caller's tenant.
func (a *admissionController) acquireShare(p *admissionPermit, taken int64, caller *contract.Caller) error {
	if !a.shared || caller == nil || p.class == ClassCompletion {
		return nil
	}
	p.owner, p.principal = quota.OwnerOf(caller), limits.PrincipalOf(caller)
	limit := int(a.classes[p.class].limit)
	limited, share := int(taken) > limit-limit/8, limit/2
	if p.class == ClassHeavy {
		if !a.heavy.acquire(p.principal, true, 1) {
			return errOneAtATime
		}
		limited, share = true, maxHeavy-1
	}
	if p.counted = a.shares[p.class].acquire(p.owner, limited, share); p.counted {
		return nil
	}
	if p.class == ClassHeavy {
		a.heavy.release(p.principal)
	}
	return errOverloaded
}

// release returns the permit. Further calls have no effect.
func (p *admissionPermit) release() {
	a := p.controller
	if a == nil {
		return
	}
	p.controller = nil
	if p.counted {
		a.shares[p.class].release(p.owner)
		if p.class == ClassHeavy {
			a.heavy.release(p.principal)
		}
	}
	a.classes[p.class].taken.Add(-1)
	if p.class == ClassWork {
		a.meter.AddInFlight(-1)
	}
}

// inFlight counts the permits of all classes that are held.
func (a *admissionController) inFlight() (n int64) {
	for i := range a.classes {
		n += a.classes[i].taken.Load()
	}
	return n
}

// permitShares prevents one holder, a tenant or a caller, from holding all permits of a
// class. In ClassWork and ClassStream, the last eighth is reserved for tenants that hold
// less than half of them: a tenant alone can hold seven eighths, and others are admitted
// while it does.
type permitShares[Holder comparable] struct {
	mu   sync.Mutex
	held map[Holder]int // without zeros
}

// acquire counts a permit of the holder, unless the share is limited and the holder has
// that many.
func (s *permitShares[Holder]) acquire(h Holder, limited bool, share int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limited && s.held[h] >= share {
		return false
	}
	if s.held == nil {
		s.held = map[Holder]int{}
	}
	s.held[h]++
	return true
}

func (s *permitShares[Holder]) release(h Holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h]--; s.held[h] <= 0 {
		delete(s.held, h)
	}
}
