package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/demo/costs"
	"github.com/caprouter/caprouter/internal/demo/docsearch"
	"github.com/caprouter/caprouter/internal/demo/pycheck"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// reviewIntent is the intent under which the rules for notebooks apply.
const reviewIntent = "databricks_review"

// review checks Python source: inputs.code (and inputs.file, its name), else
// the code block in the prompt.
func review(_ context.Context, t contract.Task) (contract.Result, error) {
	code, file := textInput(t, "code"), textInput(t, "file")
	if code == "" {
		code, file = fenced(agentkit.Prompt(t)), "prompt"
	}
	if strings.TrimSpace(code) == "" {
		return agentkit.Failure("there is no code to review: send it as inputs.code, or in the prompt between lines of ```"), nil
	}
	if file == "" {
		file = "code"
	}
	start := time.Now()
	r := pycheck.Check(code, pycheck.Options{Notebook: t.Intent == reviewIntent})
	return result(contract.ResultSuccess, map[string]any{
		"answer":   strings.TrimSpace(r.Summary(file)),
		"findings": r.Findings,
		"notebook": r.Notebook,
	}, map[string]float64{
		"lines":    float64(r.Lines),
		"findings": float64(len(r.Findings) + r.Omitted),
		"errors":   float64(r.Count(pycheck.Error)),
		"ms":       millisSince(start),
	}, explainReview(r))
}

func explainReview(r pycheck.Report) []string {
	out := []string{"read, never run: " + fmt.Sprintf("%d of %d lines hold code", r.Code, r.Lines)}
	if r.Notebook {
		out = append(out, "the rules for Databricks notebooks were applied")
	}
	if r.Omitted > 0 {
		out = append(out, fmt.Sprintf("data.findings holds the first %d findings", pycheck.MaxFindings))
	}
	return out
}

// maxHits is how many sections an answer from the documents names.
const maxHits = 3

// answerFrom returns the work of the retrieval agent over an index.
func answerFrom(index *docsearch.Index) agentkit.Work {
	return func(_ context.Context, t contract.Task) (contract.Result, error) {
		start := time.Now()
		hits := index.Search(agentkit.Prompt(t), maxHits)
		metrics := map[string]float64{"hits": float64(len(hits)), "ms": millisSince(start)}
		if len(hits) == 0 {
			return result(contract.ResultPartial, map[string]any{
				"answer": "The documents say nothing about this.", "hits": hits,
			}, metrics, []string{"no section shares a word with the question"})
		}
		return result(contract.ResultSuccess, map[string]any{
			"answer": quote(hits), "hits": hits, "source": source(hits[0]),
		}, metrics, []string{fmt.Sprintf("the best of %d sections is quoted", len(hits))})
	}
}

// quote is the answer: the best passage, where it stands, and where else to look.
func quote(hits []docsearch.Hit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n— %s, “%s”\n", hits[0].Snippet, source(hits[0]), hits[0].Heading)
	for i, h := range hits[1:] {
		lead := "See also"
		if i > 0 {
			lead = "and"
		}
		fmt.Fprintf(&b, "%s %s, “%s”\n", lead, source(h), h.Heading)
	}
	return strings.TrimSpace(b.String())
}

func source(h docsearch.Hit) string { return "docs/" + h.File + "#" + h.Anchor }

// analyse adds up the cost export in inputs.csv.
func analyse(_ context.Context, t contract.Task) (contract.Result, error) {
	text := textInput(t, "csv")
	if text == "" {
		text = fenced(agentkit.Prompt(t))
	}
	if strings.TrimSpace(text) == "" {
		return agentkit.Failure("there is no cost export to analyse: send it as inputs.csv, with a header and a column of costs"), nil
	}
	start := time.Now()
	table, err := costs.Read(text)
	if row, ok := errors.AsType[*costs.RowError](err); ok {
		return agentkit.Failure("the cost export cannot be trusted: " + row.Error()), nil
	}
	if err != nil {
		return contract.Result{}, err
	}
	r := costs.Analyse(table)
	return result(contract.ResultSuccess, map[string]any{
		"answer": strings.TrimSpace(r.Summary()),
		"costs":  r.Wire(),
	}, map[string]float64{
		"rows":      float64(r.Rows),
		"anomalies": float64(len(r.Spikes)),
		"idle":      float64(len(r.Idle)),
		"ms":        millisSince(start),
	}, []string{"amounts were added exactly and rounded once, for display"})
}

// result encodes data by the project's own encoder, which writes [] for a nil
// slice where encoding/json writes null.
func result(status contract.ResultStatus, data map[string]any, metrics map[string]float64, explanations []string) (contract.Result, error) {
	r := contract.Result{Status: status, Data: make(map[string]json.RawMessage, len(data)), Metrics: metrics, Explanations: explanations}
	for name, v := range data {
		raw, err := strictjson.Marshal(v)
		if err != nil {
			return contract.Result{}, fmt.Errorf("data.%s: %w", name, err)
		}
		r.Data[name] = raw
	}
	return r, nil
}

// textInput is the named input where it is a text, else "".
func textInput(t contract.Task, name string) string {
	var s string
	if ok, err := agentkit.Input(t, name, &s); !ok || err != nil {
		return ""
	}
	return s
}

// fenced returns what stands between the first two lines of ``` in a text, ""
// when there is no such block. A block that is not closed reaches to the end.
func fenced(text string) string {
	var block []string
	open := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			if open {
				return strings.Join(block, "")
			}
			open = true
		case open:
			block = append(block, line)
		}
	}
	return strings.Join(block, "")
}

func millisSince(start time.Time) float64 {
	return float64(time.Since(start).Round(time.Microsecond)) / float64(time.Millisecond)
}
