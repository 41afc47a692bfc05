package telemetry_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

// Unknown label values do not create series: they are counted as "other".
func TestMetricsLabelsAreClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tel := newTelemetry(t)
		m := tel.Metrics()
		values := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"completed", "B", "lexical", "success", "other"})), 1, 20).Draw(t, "values")
		for _, v := range values {
			m.RecordRequest(v, 0)
			m.RecordFallback(v)
			m.RecordClassification(v, 0)
			m.RecordTask(v, 0)
			m.RecordTaskLease(v == "again")
			m.RecordThrottled(v == "rejected")
			m.RecordModelFailure(v)
			m.RecordCascade(v, 0.5)
			m.RecordTicket(v)
			m.RecordOrchestration(contract.OrchestrationStatus(v), 0)
			m.RecordWebhook(v)
			m.RecordFeedback(contract.Verdict(v))
			m.RecordEarlyRemoval(v, 1)
			m.RecordModelCall(contract.CallPurpose(v), v, contract.Tokens{Input: 1}, 0)
		}
		allowed := regexp.MustCompile(`^(|outcome="[a-z_]+"|policy="([ABC]|other)"|source="(llm|lexical|cache|pinned|other)"|` +
			`status="(success|partial|failure|failed|cancelled|other|DONE|FAILED|BLOCKED|DEGRADED)"|result="(ok|failed|exported|dropped|delayed|rejected)"|delivery="(first|again)"|` +
			`reason="(llm_[a-z_]+|other)"|purpose="(classify|repair|more_tokens|answer|plan|verify|other)"|kind="(input|output|thinking)"|how="(opened|joined|other)"|verdict="(correct|misroute|other)"|part="(audit|requests|sessions|tickets|orchestrations|feedback|other)")$`)
		for series := range scrapeMetrics(t, tel) {
			name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
			if !strings.HasSuffix(name, "_bucket") && !allowed.MatchString(labels) {
				t.Errorf("series %s: got labels that are not in the closed set", series)
			}
		}
		known := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v != "B" })
		got := scrapeMetrics(t, tel)
		if n := len(known); got[`caprouter_fallback_total{policy="B"}`] != itoa(n) {
			t.Errorf("policy B: got %s, want %d", got[`caprouter_fallback_total{policy="B"}`], n)
		}
		unknown := 0
		for _, v := range values {
			if v != "A" && v != "B" && v != "C" {
				unknown++
			}
		}
		if want := itoa(unknown); unknown > 0 && got[`caprouter_fallback_total{policy="other"}`] != want {
			t.Errorf("policy other: got %s, want %s", got[`caprouter_fallback_total{policy="other"}`], want)
		}
	})
}
