package ticketreport

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

// RankedTicket is one row of the ranking.
type RankedTicket struct {
	Rank     int                   `json:"rank"`
	TicketID string                `json:"ticket_id"`
	Title    string                `json:"title"`
	Count    int                   `json:"count"`
	Callers  int                   `json:"callers"`
	Share    float64               `json:"share"` // of the demand, 0 to 1
	Week     int                   `json:"week"`  // requests of the last seven days
	Before   int                   `json:"week_before"`
	OpenedAt time.Time             `json:"created_at"`
	LastAt   time.Time             `json:"last_at"`
	Intent   string                `json:"intent"`  // of the suggested agent
	Nearest  *contract.NearestMiss `json:"nearest"` // null without a near miss

	weight float64
	isNew  bool // opened in the last seven days
}

// halfLifeDays is the age at which a request counts half.
const halfLifeDays = 14.0

// RankDemand orders tickets by recent demand, then by their number of requests. The demand is
// that of the 30 days before now.
func RankDemand(list []contract.Ticket, now time.Time) []RankedTicket {
	ranked := []RankedTicket{}
	total := 0.0
	for i := range list {
		t := &list[i]
		w := RankedTicket{TicketID: t.TicketID, Title: t.Title, Count: t.Count, Callers: t.Callers, OpenedAt: t.CreatedAt, LastAt: t.LastAt, Intent: suggestedIntent(t)}
		w.isNew = now.Sub(t.CreatedAt) < 7*24*time.Hour
		if len(t.Nearest) > 0 {
			w.Nearest = &t.Nearest[0]
		}
		for _, d := range t.PerDay {
			day, err := time.Parse(time.DateOnly, d.Day)
			age := int(now.UTC().Sub(day).Hours() / 24)
			if err != nil || age >= 30 {
				continue
			}
			w.weight += float64(d.Count) * math.Exp2(-float64(max(age, 0))/halfLifeDays)
			switch {
			case age < 7:
				w.Week += d.Count
			case age < 14:
				w.Before += d.Count
			}
		}
		total += w.weight
		ranked = append(ranked, w)
	}
	slices.SortFunc(ranked, func(a, b RankedTicket) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), b.Count-a.Count, cmp.Compare(a.TicketID, b.TicketID))
	})
	for i := range ranked {
		ranked[i].Rank = i + 1
		if total > 0 {
			ranked[i].Share = math.Round(1000*ranked[i].weight/total) / 1000
		}
	}
	return ranked
}

// PrintDemand prints the ranking, two lines or three per ticket.
func PrintDemand(out io.Writer, ranked []RankedTicket) error {
	if len(ranked) == 0 {
		_, err := fmt.Fprintln(out, "no open tickets: every request had an agent, or the fallback policy is not C")
		return err
	}
	var rows []terminal.Row
	for i := range ranked {
		r := &ranked[i]
		row := terminal.Row{
			Cells: []terminal.Cell{
				{Text: strconv.Itoa(r.Rank), Right: true},
				{Text: terminal.FormatDate(r.LastAt)},
				{Text: r.TicketID},
				{Text: strconv.Itoa(r.Count), Right: true},
				{Text: formatCallers(r.Callers), Right: true},
				{Text: fmt.Sprintf("%.0f %%", 100*r.Share), Right: true},
				{Text: r.formatTrend()},
			},
			Below: []terminal.Cell{{Text: r.Title}},
		}
		if r.Intent != "" {
			row.Below[0].Text = r.Intent + ": " + r.Title
		}
		if r.Nearest != nil {
			row.Below = append(row.Below, terminal.Cell{Text: fmt.Sprintf("nearest agent %s %.2f: %s", r.Nearest.AgentID, r.Nearest.Score, formatMissing(r.Nearest)), Style: terminal.Dim})
		}
		rows = append(rows, row)
	}
	opts := terminal.DetectOptions(out)
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	p.WriteRecords([]string{"#", "LAST (UTC)", "TICKET", "COUNT", "FROM", "SHARE", "TREND"}, rows)
	_, err := io.WriteString(out, p.String())
	return err
}

// formatTrend compares the last seven days with the seven before.
func (w *RankedTicket) formatTrend() string {
	switch {
	case w.Week == 0 && w.Before == 0:
		return "quiet"
	case w.isNew && w.Before == 0:
		return fmt.Sprintf("new +%d", w.Week)
	case w.Week == w.Before:
		return "steady"
	}
	return fmt.Sprintf("%+d", w.Week-w.Before)
}
