package costs

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// How many entries of each list a summary and the wire form spell out.
const (
	maxServices = 8
	maxOthers   = 5
	maxName     = 60 // characters of a name
)

// Summary renders the report for people.
func (r Report) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s%s.\n", r.amount(r.Total), plural(r.Rows, "row"), r.period())
	r.services(&b)
	r.resources(&b)
	r.months(&b)
	r.untagged(&b)
	r.unusual(&b)
	return b.String()
}

func (r Report) amount(a *big.Rat) string {
	return strings.TrimSpace(money(a) + " " + r.Currency)
}

const day = "2006-01-02"

func (r Report) period() string {
	if r.From.IsZero() {
		return ""
	}
	return ", " + r.From.Format(day) + " to " + r.To.Format(day)
}

func (r Report) services(b *strings.Builder) {
	b.WriteString("By service:\n")
	shown := r.Services[:min(len(r.Services), maxServices)]
	r.shares(b, shown)
	if n := len(r.Services) - len(shown); n > 0 {
		fmt.Fprintf(b, "  and %d more\n", n)
	}
}

func (r Report) resources(b *strings.Builder) {
	if len(r.Resources) == 0 {
		return
	}
	b.WriteString("Top resources:\n")
	r.shares(b, r.Resources[:min(len(r.Resources), maxOthers)])
}

// shares writes names, amounts and percentages in columns.
func (r Report) shares(b *strings.Builder, list []Share) {
	names, amounts := 0, 0
	for _, s := range list {
		names = max(names, utf8.RuneCountInString(clip(s.Name, maxName)))
		amounts = max(amounts, len(money(s.Cost)))
	}
	for _, s := range list {
		line := fmt.Sprintf("  %s  %*s  %7s  %s", pad(clip(s.Name, maxName), names), amounts, money(s.Cost), percent(s.Cost, r.Total), clip(s.Of, maxName))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func (r Report) months(b *strings.Builder) {
	n := len(r.Months)
	if n < 2 {
		return
	}
	before, then := r.Months[n-2], r.Months[n-1]
	growth, unit := change(before.perDay(), then.perDay()), ""
	if before.Days == 1 && then.Days == 1 { // a table by month
		fmt.Fprintf(b, "Month over month: %s %s, %s %s (%s).\n",
			before.First.Format("2006-01"), money(before.Cost), then.First.Format("2006-01"), money(then.Cost), growth)
	} else {
		unit = " a day"
		fmt.Fprintf(b, "Month over month: %s %s (%s), %s %s (%s); per day %s.\n",
			before.First.Format("2006-01"), money(before.Cost), plural(before.Days, "day"),
			then.First.Format("2006-01"), money(then.Cost), plural(then.Days, "day"), growth)
	}
	if len(r.Movers) > 0 {
		m := r.Movers[0]
		fmt.Fprintf(b, "  most of it: %s, from %s to %s%s (%s)\n", clip(m.Service, maxName), money(m.Before), money(m.Then), unit, change(m.Before, m.Then))
	}
}

// change prints the growth from one amount to another.
func change(from, to *big.Rat) string {
	if from.Sign() == 0 {
		return "new"
	}
	s := percent(new(big.Rat).Sub(to, from), new(big.Rat).Abs(from))
	if to.Cmp(from) >= 0 {
		s = "+" + s
	}
	return s
}

func (r Report) untagged(b *strings.Builder) {
	u := r.Untagged
	if u == nil || u.Rows == 0 {
		return
	}
	fmt.Fprintf(b, "Untagged: %s (%s) in %s: %s.\n", r.amount(u.Cost), percent(u.Cost, r.Total),
		plural(len(u.Resources), "resource"), listing(u.Resources))
}

func (r Report) unusual(b *strings.Builder) {
	for _, s := range r.Spikes[:min(len(r.Spikes), maxOthers)] {
		how := "where it costs nothing on most days"
		if s.Median.Sign() > 0 {
			how = new(big.Rat).Quo(s.Cost, s.Median).FloatString(1) + " times its median of " + money(s.Median)
		}
		fmt.Fprintf(b, "Unusual: %s, %s cost %s, %s.\n", s.Day.Format(day), clip(s.Service, maxName), r.amount(s.Cost), how)
	}
	for _, i := range r.Idle[:min(len(r.Idle), maxOthers)] {
		fmt.Fprintf(b, "Idle: %s cost %s; %s.\n", clip(i.Resource, maxName), r.amount(i.Cost), i.Reason)
	}
}

// listing joins the first names of a list.
func listing(names []string) string {
	shown := slices.Clone(names[:min(len(names), maxOthers)])
	for i := range shown {
		shown[i] = clip(shown[i], maxName)
	}
	s := strings.Join(shown, ", ")
	if n := len(names) - maxOthers; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// clip shortens s to n characters.
func clip(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
