package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/history"
)

func newAuditListCommand() *cobra.Command {
	var flags routerflags.Log
	var filter auditFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the records of the audit log, newest first",
		Long: "List the facts of all records in the audit log of a running router, or of a data directory, newest first:\n" +
			"time (UTC), kind, tenant and actor, what was done, outcome, and the number of the record; below them the\n" +
			"request. Contents are not listed: caprouter decisions shows those of decisions.\n\n" +
			"  decision   a decision, before its tasks are sent\n" +
			"  outcome    the response to a request\n" +
			"  tool_call  the start and the end of a call of a tool of an MCP server\n" +
			"  run        an event of an orchestration\n" +
			"  feedback   a verdict on a decision\n" +
			"  admin      an act of an administrator, an agent or the router",
		Example: `  caprouter audit list --kind tool_call --kind admin --since 24h
  caprouter audit list --actor ana --tool files.read
  caprouter audit list --request 01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90 --json
  caprouter audit list --data-dir /var/lib/caprouter`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := filter.newQuery(cmd)
			if err != nil {
				return err
			}
			if err := flags.Check(cmd); err != nil {
				return err
			}
			list, err := readAuditLog(cmd, &flags, query)
			if err != nil {
				return err
			}
			if err := cmdline.PrintList(cmd, flags.AsJSON, list, "records", formatAuditEntries); err != nil {
				return err
			}
			if len(list) == 0 && query.Agent != "" {
				flags.HintUnknownAgent(cmd, query.Agent)
			}
			return nil
		},
	}
	flags.Register(cmd)
	filter.register(cmd)
	return cmd
}

// auditFilter selects records of the audit log.
type auditFilter struct {
	kinds                       []string
	since, until                string
	actor, agent, tool, request string
	limit                       int
}

func (f *auditFilter) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.kinds, "kind", nil, "only those of this `KIND`, may be repeated: "+strings.Join(auditKindNames(), ", "))
	flags.StringVar(&f.since, "since", "7d", "only those from this `TIME` on: 12h or 7d ago, or 2026-01-02T15:04:05Z")
	flags.StringVar(&f.until, "until", "", "only those up to this `TIME`, written like --since")
	flags.StringVar(&f.actor, "actor", "", "only those of the caller with this `SUBJECT`")
	flags.StringVar(&f.agent, "agent", "", "only those about the agent with this `ID`")
	flags.StringVar(&f.tool, "tool", "", "only those about this `TOOL`: the server and the tool, for example files.read")
	flags.StringVar(&f.request, "request", "", "only those about the request or orchestration with this `ID`")
	f.limit = 100
	cmdline.AddCountFlag(cmd, &f.limit, "limit", 1, 0, "maximum number `N` of records")
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(auditKindNames(), cobra.ShellCompDirectiveNoFileComp)))
}

func auditKindNames() []string {
	var names []string
	for _, kind := range contract.AuditKinds() {
		names = append(names, string(kind))
	}
	return names
}

// NewQuery checks the flags. The limit is that of the list, not of a page.
func (f *auditFilter) newQuery(cmd *cobra.Command) (contract.AuditQuery, error) {
	query := contract.AuditQuery{Actor: f.actor, Agent: f.agent, Tool: f.tool, RequestID: f.request, Limit: f.limit}
	for _, name := range f.kinds {
		kind := contract.AuditKind(name)
		if !slices.Contains(contract.AuditKinds(), kind) {
			return query, cmdline.UsageErrorf(cmd, "--kind is %s, not %q", strings.Join(auditKindNames(), ", "), name)
		}
		if !slices.Contains(query.Kinds, kind) {
			query.Kinds = append(query.Kinds, kind)
		}
	}
	now := time.Now()
	var err error
	if query.Since, err = routerflags.ParseSince(f.since, now); err != nil {
		return query, cmdline.UsageErrorf(cmd, "--since %w", err)
	}
	if f.until != "" {
		if query.Until, err = routerflags.ParseSince(f.until, now); err != nil {
			return query, cmdline.UsageErrorf(cmd, "--until %w", err)
		}
	}
	switch {
	case f.until != "" && query.Until.Before(query.Since):
		return query, cmdline.UsageErrorf(cmd, "--until %s is before --since %s", f.until, f.since)
	case f.agent != "" && !contract.ValidAgentID(f.agent):
		return query, cmdline.UsageErrorf(cmd, "--agent %q is not the id of an agent", f.agent)
	}
	return query, nil
}

// readAuditLog reads the log that the flags select.
func readAuditLog(cmd *cobra.Command, flags *routerflags.Log, query contract.AuditQuery) ([]contract.AuditEntry, error) {
	if flags.DataDir == "" {
		c, err := flags.NewClient(cmd)
		if err != nil {
			return nil, err
		}
		return c.ListAudit(cmd.Context(), query)
	}
	log, _, err := flags.OpenFiles(cmd.Context())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	list, limit := []contract.AuditEntry{}, query.Limit
	for {
		query.Limit = limit - len(list)
		page, err := history.ReadAuditEntries(cmd.Context(), log, query)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Entries...)
		if query.Cursor = page.NextCursor; query.Cursor == "" || len(list) == limit {
			return list, nil
		}
	}
}

// Widths of the columns of a table of records.
const (
	maxWhoWidth     = 16
	minWhatWidth    = 12
	maxOutcomeWidth = 12
)

// formatAuditEntries returns one line for each entry that fits 80 columns, and one for its
// request and further facts.
func formatAuditEntries(list []contract.AuditEntry, opts terminal.Options) string {
	const what = 3 // column
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range list {
		e := &list[i]
		row := terminal.Row{Cells: []terminal.Cell{
			{Text: terminal.FormatRowTime(e.Time)},
			{Text: string(e.Kind)},
			{Text: terminal.Truncate(terminal.OneLine(formatActor(e)), maxWhoWidth)},
			{Text: formatAct(e)},
			{Text: terminal.Truncate(formatOutcome(e), maxOutcomeWidth)},
			{Text: e.ID},
		}}
		if text := formatAuditDetails(e); text != "" {
			row.Below = append(row.Below, terminal.Cell{Text: terminal.Truncate(terminal.OneLine(text), opts.Width-terminal.TimeWidth-len(terminal.ColumnGap))})
		}
		rows = append(rows, row)
	}
	header := []string{terminal.TimeHeader, "KIND", "WHO", "WHAT", "OUTCOME", "ID"}
	room := opts.Width
	for k, width := range terminal.ColumnWidths(rows) {
		if k != what {
			room -= max(width, terminal.TextWidth(header[k])) + len(terminal.ColumnGap)
		}
	}
	for i := range rows {
		cell := &rows[i].Cells[what]
		cell.Text = terminal.Truncate(terminal.OneLine(cell.Text), max(room, minWhatWidth))
	}
	p.WriteRecords(header, rows)
	return p.String()
}

// formatActor returns the tenant and the subject, "-" for the router itself.
func formatActor(e *contract.AuditEntry) string {
	if e.Tenant != "" && e.Actor != "" {
		return e.Tenant + "/" + e.Actor
	}
	return cmp.Or(e.Actor, e.Tenant, "-")
}

// formatAct returns what was done: the event, the tool, the agents, or the fallback policy.
func formatAct(e *contract.AuditEntry) string {
	parts := []string{e.Event, e.Tool}
	if len(e.Agents) > 0 {
		parts = append(parts, strings.Join(e.Agents, ", "))
	}
	if e.FallbackUsed != "" {
		parts = append(parts, "fallback "+e.FallbackUsed)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return cmp.Or(strings.Join(parts, " "), "-")
}

// formatOutcome returns the verdict or the status. The status of a record that begins something
// stays "running", although a later record has the outcome.
func formatOutcome(e *contract.AuditEntry) string {
	switch {
	case e.Status != contract.StatusRunning:
		return cmp.Or(string(e.Verdict), string(e.Status), "-")
	case e.Kind == contract.AuditRun: // an event in between
		return "-"
	}
	return "started"
}

// formatAuditDetails returns the facts of an entry that have no column.
func formatAuditDetails(e *contract.AuditEntry) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("request", e.RequestID)
	if e.Erased {
		parts = append(parts, "(erased)")
	}
	add("rule", e.Rule)
	add("instance", e.Instance)
	parts = append(parts, e.Detail)
	add("orchestration", e.OrchestrationID)
	return strings.TrimSpace(strings.Join(parts, " "))
}
