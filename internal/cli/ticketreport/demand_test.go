package ticketreport

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestRankDemand(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	list := []contract.Ticket{
		{TicketID: "old", Count: 500, PerDay: []contract.DayCount{dayBefore(now, 40, 500)}},
		{TicketID: "older", Count: 20},
		{TicketID: "fading", Count: 40, PerDay: []contract.DayCount{dayBefore(now, 13, 30), dayBefore(now, 3, 10)}},
		{TicketID: "new", CreatedAt: now.AddDate(0, 0, -1), Count: 30, PerDay: []contract.DayCount{dayBefore(now, 1, 10), dayBefore(now, 0, 20)}, SuggestedYAML: "version: 1\nclients: { a: { match: { intent: [x], domains: [y] } } }\n"},
		{TicketID: "back again", CreatedAt: now.AddDate(0, 0, -60), Count: 12, PerDay: []contract.DayCount{dayBefore(now, 45, 8), dayBefore(now, 2, 4)}},
		{TicketID: "steady", Count: 4, PerDay: []contract.DayCount{dayBefore(now, 10, 2), dayBefore(now, 2, 2)}},
		{TicketID: "broken", Count: 1, PerDay: []contract.DayCount{{Day: "x", Count: 9}}},
	}
	type row struct {
		ID, Trend string
		Share     float64
	}
	var got []row
	for _, w := range RankDemand(list, now) {
		got = append(got, row{w.TicketID, w.formatTrend(), w.Share})
	}
	want := []row{
		{"new", "new +30", 0.487},
		{"fading", "-20", 0.403},
		{"back again", "+4", 0.06},
		{"steady", "steady", 0.05},
		{"old", "quiet", 0},
		{"older", "quiet", 0},
		{"broken", "quiet", 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
	if got := RankDemand(nil, now); len(got) != 0 {
		t.Errorf("no tickets: got %v", got)
	}
}

// dayBefore returns the count for the day this many days before.
func dayBefore(now time.Time, days, count int) contract.DayCount {
	return contract.DayCount{Day: now.AddDate(0, 0, -days).Format(time.DateOnly), Count: count}
}
