package costs

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Report is where the money went. Every amount is exact.
type Report struct {
	Currency  string
	Rows      int
	Total     *big.Rat
	From, To  time.Time // zero when the file has no dates
	Services  []Share   // most expensive first
	Resources []Share   // most expensive first
	Months    []Month   // in order
	Movers    []Mover   // what changed most between the last two months
	Untagged  *Untagged // nil when the file has no tags
	Spikes    []Spike   // days far above the usual
	Idle      []Idle    // paid for and hardly used
}

// Share is one part of the total.
type Share struct {
	Name string
	Of   string // of a resource: its service
	Cost *big.Rat
}

// Month is one calendar month.
type Month struct {
	First time.Time
	Days  int // with costs
	Cost  *big.Rat
}

// perDay is the average over the days with costs, so that a month that is not
// over yet compares with a whole one.
func (m Month) perDay() *big.Rat {
	return new(big.Rat).Quo(m.Cost, big.NewRat(int64(max(m.Days, 1)), 1))
}

// Mover is a service whose costs per day changed from one month to the next.
type Mover struct {
	Service      string
	Before, Then *big.Rat // per day
}

func (m Mover) change() *big.Rat { return new(big.Rat).Sub(m.Then, m.Before) }

// Untagged is what nobody can be asked about.
type Untagged struct {
	Cost      *big.Rat
	Rows      int
	Resources []string // most expensive first
}

// Spike is a day on which a service cost far more than usual.
type Spike struct {
	Day     time.Time
	Service string
	Cost    *big.Rat
	Median  *big.Rat // of the service's days
}

// Idle is a resource that is paid for and hardly used.
type Idle struct {
	Resource, Service, Reason string
	Cost                      *big.Rat
}

// nameless stands for a missing service or resource.
const nameless = "(none)"

// Analyse adds a table up.
func Analyse(t *Table) Report {
	r := Report{Currency: t.Currency, Rows: len(t.Rows), Total: new(big.Rat)}
	for _, row := range t.Rows {
		r.Total.Add(r.Total, row.Cost)
	}
	byService, byResource := newTally(), newTally()
	for _, row := range t.Rows {
		byService.add(row.serviceName(), "", row.Cost)
		if row.Resource != "" {
			byResource.add(row.Resource, row.Service, row.Cost)
		}
	}
	r.Services, r.Resources = byService.shares(), byResource.shares()
	if _, ok := t.columns[tags]; ok {
		r.Untagged = untagged(t)
	}
	r.Idle = idle(t)
	if _, ok := t.columns[date]; ok {
		r.From, r.To = span(t)
		r.Months = months(t)
		r.Movers = movers(t, r.Months)
		r.Spikes = spikes(t, r.Total)
	}
	return r
}

func (r Row) serviceName() string { return cmp.Or(r.Service, nameless) }

// tagged reports whether a tag field holds anything.
func (r Row) tagged() bool {
	switch strings.ToLower(strings.ReplaceAll(r.Tags, " ", "")) {
	case "", "{}", "[]", "null", "none", "n/a", "-":
		return false
	}
	return true
}

// tally sums costs by name and remembers the order of appearance, so that
// equal sums come in a fixed order.
type tally struct {
	index map[string]int
	list  []Share
}

func newTally() *tally { return &tally{index: make(map[string]int)} }

func (t *tally) add(name, of string, cost *big.Rat) {
	i, ok := t.index[name]
	if !ok {
		i = len(t.list)
		t.index[name] = i
		t.list = append(t.list, Share{Name: name, Of: of, Cost: new(big.Rat)})
	}
	t.list[i].Cost.Add(t.list[i].Cost, cost)
}

// shares returns the sums, the largest first.
func (t *tally) shares() []Share {
	slices.SortStableFunc(t.list, func(a, b Share) int { return b.Cost.Cmp(a.Cost) })
	return t.list
}

func span(t *Table) (from, to time.Time) {
	from, to = t.Rows[0].Day, t.Rows[0].Day
	for _, row := range t.Rows {
		if row.Day.Before(from) {
			from = row.Day
		}
		if row.Day.After(to) {
			to = row.Day
		}
	}
	return from, to
}

func firstOfMonth(day time.Time) time.Time {
	return time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func months(t *Table) []Month {
	byMonth := make(map[time.Time]*Month)
	days := make(map[time.Time]bool)
	for _, row := range t.Rows {
		first := firstOfMonth(row.Day)
		m := byMonth[first]
		if m == nil {
			m = &Month{First: first, Cost: new(big.Rat)}
			byMonth[first] = m
		}
		m.Cost.Add(m.Cost, row.Cost)
		if !days[row.Day] {
			days[row.Day] = true
			m.Days++
		}
	}
	out := make([]Month, 0, len(byMonth))
	for _, m := range byMonth {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Month) int { return a.First.Compare(b.First) })
	return out
}

// movers compares the last two months by service, per day; the largest change
// comes first.
func movers(t *Table, all []Month) []Mover {
	if len(all) < 2 {
		return nil
	}
	before, then := all[len(all)-2], all[len(all)-1]
	old, now := newTally(), newTally()
	for _, row := range t.Rows {
		switch firstOfMonth(row.Day) {
		case before.First:
			old.add(row.serviceName(), "", row.Cost)
			now.add(row.serviceName(), "", new(big.Rat))
		case then.First:
			old.add(row.serviceName(), "", new(big.Rat))
			now.add(row.serviceName(), "", row.Cost)
		}
	}
	var out []Mover
	for i := range old.list { // both lists hold the same names in the same order
		m := Mover{
			Service: old.list[i].Name,
			Before:  Month{Days: before.Days, Cost: old.list[i].Cost}.perDay(),
			Then:    Month{Days: then.Days, Cost: now.list[i].Cost}.perDay(),
		}
		if m.change().Sign() != 0 {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b Mover) int {
		return new(big.Rat).Abs(b.change()).Cmp(new(big.Rat).Abs(a.change()))
	})
	return out
}

func untagged(t *Table) *Untagged {
	u := &Untagged{Cost: new(big.Rat)}
	by := newTally()
	for _, row := range t.Rows {
		if row.tagged() {
			continue
		}
		u.Cost.Add(u.Cost, row.Cost)
		u.Rows++
		by.add(cmp.Or(row.Resource, row.serviceName()), "", row.Cost)
	}
	for _, s := range by.shares() {
		u.Resources = append(u.Resources, s.Name)
	}
	return u
}
