package costs

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"
)

// What counts as a spike: more than spikeTimes the median of the service's
// days, of which there are at least spikeDays, by at least one percent of the
// whole table. A median, because a mean is moved by the spike itself.
const (
	spikeTimes = 3
	spikeDays  = 7
)

// spikes finds the days far above a service's usual ones, the costliest first.
func spikes(t *Table, total *big.Rat) []Spike {
	daily := make(map[string]map[time.Time]*big.Rat)
	for _, row := range t.Rows {
		s := row.serviceName()
		if daily[s] == nil {
			daily[s] = make(map[time.Time]*big.Rat)
		}
		if daily[s][row.Day] == nil {
			daily[s][row.Day] = new(big.Rat)
		}
		daily[s][row.Day].Add(daily[s][row.Day], row.Cost)
	}
	least := new(big.Rat).Mul(total, big.NewRat(1, 100))
	var out []Spike
	for s, days := range daily {
		if len(days) < spikeDays {
			continue
		}
		m := median(days)
		limit := new(big.Rat).Mul(m, big.NewRat(spikeTimes, 1))
		for day, c := range days {
			if c.Cmp(limit) > 0 && new(big.Rat).Sub(c, m).Cmp(least) >= 0 && m.Sign() >= 0 {
				out = append(out, Spike{Day: day, Service: s, Cost: c, Median: m})
			}
		}
	}
	slices.SortFunc(out, func(a, b Spike) int {
		return cmp.Or(b.Cost.Cmp(a.Cost), a.Day.Compare(b.Day), strings.Compare(a.Service, b.Service))
	})
	return out
}

func median(days map[time.Time]*big.Rat) *big.Rat {
	list := make([]*big.Rat, 0, len(days))
	for _, c := range days {
		list = append(list, c)
	}
	slices.SortFunc(list, (*big.Rat).Cmp)
	n := len(list)
	m := new(big.Rat).Add(list[(n-1)/2], list[n/2])
	return m.Mul(m, big.NewRat(1, 2))
}

// idleUsage is the average utilisation, in percent, below which a resource
// counts as idle.
const idleUsage = 5

// idleWords in a resource's name say that it is left over.
var idleWords = []string{"unattached", "orphan", "unused", "stopped", "deprecated", "-old", "old-"}

// idle finds resources that are paid for and hardly used, the costliest first.
func idle(t *Table) []Idle {
	seen := make(map[string]*use)
	var order []*use
	for _, row := range t.Rows {
		if row.Resource == "" {
			continue
		}
		u := seen[row.Resource]
		if u == nil {
			u = &use{resource: row.Resource, service: row.Service, cost: new(big.Rat), quantity: new(big.Rat), usage: new(big.Rat)}
			seen[row.Resource] = u
			order = append(order, u)
		}
		u.add(row)
	}
	var out []Idle
	for _, u := range order {
		if why := u.idle(); why != "" {
			out = append(out, Idle{Resource: u.resource, Service: u.service, Cost: u.cost, Reason: why})
		}
	}
	slices.SortStableFunc(out, func(a, b Idle) int { return b.Cost.Cmp(a.Cost) })
	return out
}

// use is what the rows of one resource say about its use.
type use struct {
	resource, service string
	cost              *big.Rat
	quantity          *big.Rat
	quantities        int
	usage             *big.Rat
	usages            int
}

func (u *use) add(row Row) {
	u.cost.Add(u.cost, row.Cost)
	if row.Quantity != nil {
		u.quantity.Add(u.quantity, row.Quantity)
		u.quantities++
	}
	if row.Usage != nil {
		u.usage.Add(u.usage, row.Usage)
		u.usages++
	}
}

// idle says why the resource counts as idle, "" when it does not.
func (u *use) idle() string {
	if u.cost.Sign() <= 0 {
		return ""
	}
	if u.usages > 0 {
		mean := new(big.Rat).Quo(u.usage, big.NewRat(int64(u.usages), 1))
		if mean.Cmp(big.NewRat(idleUsage, 1)) < 0 {
			return "average use " + mean.FloatString(1) + " %"
		}
		return ""
	}
	if u.quantities > 0 && u.quantity.Sign() == 0 {
		return "billed without any usage"
	}
	for _, w := range idleWords {
		if strings.Contains(strings.ToLower(u.resource), w) {
			return "its name says “" + strings.Trim(w, "-") + "”"
		}
	}
	return ""
}
