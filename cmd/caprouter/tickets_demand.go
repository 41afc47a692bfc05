package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
)

// mostTickets is how many open tickets a ranking looks at: more than a router
// keeps open.
const mostTickets = 100_000

func newTicketsDemandCommand() *cobra.Command {
	var flags ticketFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "demand",
		Short: "Rank the open tickets: which agent to build next",
		Long: "Rank the open tickets by demand: the requests of the last 30 days, where one of two weeks ago counts\n" +
			"half of one of today. SHARE is the ticket's part of all of it, TREND the last seven days against the\n" +
			"seven before them.",
		Example: `  caprouter tickets demand
  caprouter tickets demand --limit 3 --json`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usagef(cmd, "--limit is 1 or more, not %d", limit)
			}
			c, err := flags.client(cmd)
			if err != nil {
				return err
			}
			list, err := c.tickets(cmd.Context(), string(contract.TicketOpen), mostTickets)
			if err != nil {
				return err
			}
			ranked := rankDemand(list, time.Now())
			ranked = ranked[:min(len(ranked), limit)]
			if flags.asJSON {
				return printJSON(cmd.OutOrStdout(), struct {
					Demand []wanted `json:"demand"`
				}{ranked})
			}
			return printDemand(cmd.OutOrStdout(), ranked)
		},
	}
	flags.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, "the most tickets to show")
	return cmd
}

// wanted is one row of the ranking: an agent that is missing.
type wanted struct {
	Rank     int                   `json:"rank"`
	TicketID string                `json:"ticket_id"`
	Title    string                `json:"title"`
	Count    int                   `json:"count"`
	Callers  int                   `json:"callers"`
	Share    float64               `json:"share"` // of all demand, 0 … 1
	Week     int                   `json:"week"`  // requests of the last seven days
	Before   int                   `json:"week_before"`
	OpenedAt time.Time             `json:"created_at"`
	LastAt   time.Time             `json:"last_at"`
	Intent   string                `json:"intent"`  // suggested
	Nearest  *contract.NearestMiss `json:"nearest"` // null when no agent came near

	weight float64
	young  bool // opened in the last week
}

// halfLife is how many days make a request count half.
const halfLife = 14.0

// rankDemand orders tickets by recent demand, then by all requests they have.
func rankDemand(list []contract.Ticket, now time.Time) []wanted {
	ranked := []wanted{}
	total := 0.0
	for i := range list {
		t := &list[i]
		w := wanted{TicketID: t.TicketID, Title: t.Title, Count: t.Count, Callers: t.Callers, OpenedAt: t.CreatedAt, LastAt: t.LastAt, Intent: suggestedIntent(t)}
		w.young = now.Sub(t.CreatedAt) < 7*24*time.Hour
		if len(t.Nearest) > 0 {
			w.Nearest = &t.Nearest[0]
		}
		for _, d := range t.PerDay {
			day, err := time.Parse(time.DateOnly, d.Day)
			age := int(now.UTC().Sub(day).Hours() / 24)
			if err != nil || age >= 30 {
				continue
			}
			w.weight += float64(d.Count) * math.Exp2(-float64(max(age, 0))/halfLife)
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
	slices.SortFunc(ranked, func(a, b wanted) int {
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

func printDemand(out io.Writer, ranked []wanted) error {
	if len(ranked) == 0 {
		_, err := fmt.Fprintln(out, "no open tickets: every request found an agent, or the registry's fallback policy is not C")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "#\tREQUESTS\tCALLERS\tSHARE\tTREND\tLAST\tBUILD\tNEAREST NOW\tTICKET\tTITLE")
	for i := range ranked {
		r := &ranked[i]
		near := "-"
		if r.Nearest != nil {
			near = oneLine(fmt.Sprintf("%s %.2f: %s", r.Nearest.AgentID, r.Nearest.Score, lacks(r.Nearest)))
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%.0f %%\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Rank, r.Count, callers(r.Callers), 100*r.Share, r.trend(), minute(r.LastAt),
			names(r.Intent), near, oneLine(r.TicketID), oneLine(r.Title))
	}
	return w.Flush()
}

// trend compares the last week with the one before.
func (w *wanted) trend() string {
	switch {
	case w.Week == 0 && w.Before == 0:
		return "quiet"
	case w.young && w.Before == 0:
		return fmt.Sprintf("new +%d", w.Week)
	case w.Week == w.Before:
		return "steady"
	}
	return fmt.Sprintf("%+d", w.Week-w.Before)
}
