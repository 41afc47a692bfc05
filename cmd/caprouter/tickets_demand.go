package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

// maxRankedTickets is higher than the number of open tickets that a router stores.
const maxRankedTickets = 100_000

func newTicketsDemandCommand() *cobra.Command {
	var flags routerflags.Server
	limit := 20
	cmd := &cobra.Command{
		Use:   "demand",
		Short: "Rank the open tickets: which agent to build next",
		Long: "Rank the open tickets by demand: the requests of the last 30 days, with a half-life of two weeks.\n" +
			"COUNT is the number of requests, FROM the number of callers, SHARE the ticket's share of the demand,\n" +
			"and TREND compares the last seven days with the seven before.",
		Example: `  caprouter tickets demand
  caprouter tickets demand --limit 3 --json`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			list, err := c.ListTickets(cmd.Context(), string(contract.TicketOpen), maxRankedTickets)
			if err != nil {
				return err
			}
			ranked := rankDemand(list, time.Now())
			ranked = ranked[:min(len(ranked), limit)]
			output := struct {
				Demand []rankedTicket `json:"demand"`
			}{ranked}
			return cmdline.PrintOutput(cmd, flags.AsJSON, output, func(out io.Writer) error { return printDemand(out, ranked) })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmdline.AddCountFlag(cmd, &limit, "limit", 1, 0, "maximum number `N` of tickets")
	return cmd
}

// rankedTicket is one row of the ranking.
type rankedTicket struct {
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

// rankDemand orders tickets by recent demand, then by their number of requests.
func rankDemand(list []contract.Ticket, now time.Time) []rankedTicket {
	ranked := []rankedTicket{}
	total := 0.0
	for i := range list {
		t := &list[i]
		w := rankedTicket{TicketID: t.TicketID, Title: t.Title, Count: t.Count, Callers: t.Callers, OpenedAt: t.CreatedAt, LastAt: t.LastAt, Intent: suggestedIntent(t)}
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
	slices.SortFunc(ranked, func(a, b rankedTicket) int {
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

func printDemand(out io.Writer, ranked []rankedTicket) error {
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
				{Text: formatDate(r.LastAt)},
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
	p.WriteRecords([]string{"#", "LAST", "TICKET", "COUNT", "FROM", "SHARE", "TREND"}, rows)
	_, err := io.WriteString(out, p.String())
	return err
}

// formatTrend compares the last seven days with the seven before.
func (w *rankedTicket) formatTrend() string {
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
