package pins

import (
	"context"
	"errors"
	"sync"

	"github.com/caprouter/caprouter/internal/store"
)

// Memory is a Store in memory.
type Memory struct {
	mu   sync.Mutex
	pins map[string]Pin
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{pins: map[string]Pin{}} }

// Get implements Store.
func (m *Memory) Get(_ context.Context, action string) (*Pin, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p, ok := m.pins[action]; ok {
		return &p, nil
	}
	return nil, nil //nolint:nilnil // as the interface specifies
}

// Create implements Store.
func (m *Memory) Create(_ context.Context, p *Pin) (*Pin, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored, ok := m.pins[p.Action]
	if !ok {
		stored = *p
		m.pins[p.Action] = stored
	}
	return &stored, nil
}

// Put implements Store.
func (m *Memory) Put(_ context.Context, p *Pin) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pins[p.Action] = *p
	return nil
}

// Table is a durable Store. Processes that share the bucket share the pins.
type Table struct{ rows *store.Table[Pin] }

// tablePrefix begins the keys of pins.
const tablePrefix = "pin."

// NewTable returns the pins in the bucket.
func NewTable(b *store.Bucket) *Table {
	return &Table{store.NewTable[Pin](b, store.TableConfig[Pin]{Prefix: tablePrefix})}
}

// Get implements Store.
func (t *Table) Get(ctx context.Context, action string) (*Pin, error) {
	row, err := t.rows.Get(ctx, store.HashKey(action))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // as the interface specifies
	}
	return row.Value, err
}

// Create implements Store.
func (t *Table) Create(ctx context.Context, p *Pin) (*Pin, error) {
	_, err := t.rows.Create(ctx, store.HashKey(p.Action), p)
	if errors.Is(err, store.ErrExists) {
		return t.Get(ctx, p.Action)
	}
	return p, err
}

// Put implements Store.
func (t *Table) Put(ctx context.Context, p *Pin) error {
	_, err := t.rows.Create(ctx, store.HashKey(p.Action), p)
	if !errors.Is(err, store.ErrExists) {
		return err
	}
	_, err = t.rows.Update(ctx, store.HashKey(p.Action), func(stored *Pin) error {
		*stored = *p
		return nil
	})
	return err
}
