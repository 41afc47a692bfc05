package quota

// Trim deletes the oldest removable values of the owner until its share is not exceeded any
// more, it has none, or the oldest one has the key except.
func (l *Ledger) Trim(owner Owner, except string, remove func(key string) error) error {
	return l.trim(except, remove, func() (*entry, bool) {
		a := l.accounts[owner]
		if a == nil {
			return nil, false
		}
		l.expire(a)
		return a.oldest(), a.bytes+overhead > l.share
	})
}

// Free deletes the oldest removable values, always of the owner with the most bytes, until
// they add up to the number of bytes, or there are none.
func (l *Ledger) Free(bytes int64, remove func(key string) error) error {
	return l.trim("", remove, func() (*entry, bool) {
		e := l.oldestOfLargestOwner()
		if e == nil || bytes <= 0 {
			return nil, false
		}
		bytes -= e.bytes
		return e, true
	})
}

// fullShare is the part of the limit above which MakeRoom removes values of any owner.
const fullShare = 0.9

// MakeRoom is Trim and, if the values of all owners nearly reach the limit, Free.
func (l *Ledger) MakeRoom(owner Owner, except string, remove func(key string) error) error {
	if err := l.Trim(owner, except, remove); err != nil {
		return err
	}
	return l.Free(l.surplus(fullShare), remove)
}

// trim deletes values until next returns none, or reports that enough are deleted. It calls
// next with mu held, and remove without, because remove calls Written.
func (l *Ledger) trim(except string, remove func(key string) error, next func() (*entry, bool)) error {
	trimmed := map[Owner]int{}
	defer func() {
		for owner, values := range trimmed {
			l.cfg.OnTrim(owner, values)
		}
	}()
	for {
		l.mu.Lock()
		e, more := next()
		if e == nil || !more || e.key == except {
			l.mu.Unlock()
			return nil
		}
		owner, key := e.account.owner, e.key
		l.mu.Unlock()
		if err := remove(key); err != nil {
			return err
		}
		l.Written(key, -1)
		trimmed[owner]++
	}
}

// oldestOfLargestOwner returns the oldest removable value of the owner with the most bytes
// that has one.
func (l *Ledger) oldestOfLargestOwner() (oldest *entry) {
	most := int64(-1)
	for _, a := range l.accounts {
		if a.bytes > most {
			if e := a.oldest(); e != nil {
				oldest, most = e, a.bytes
			}
		}
	}
	return oldest
}

// surplus returns by how many bytes the values of all owners exceed a part of the limit,
// from 0 to 1. It is negative if they do not.
func (l *Ledger) surplus(part float64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total - l.BytesOf(part)
}
