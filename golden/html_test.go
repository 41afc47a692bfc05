package golden

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

// sampleReport contains every feature of the page.
func sampleReport() *Report {
	decision := &contract.Decision{
		DecisionID: "d-1",
		Classification: contract.Classification{
			Intent: "cost_analysis", Domains: []string{"azure"}, Confidence: 0.71, Source: contract.SourceLexical,
		},
		Candidates: []contract.Candidate{{
			AgentID: "billing_agent", Score: 0.8, Parts: contract.ScoreParts{Intent: 0.5, Domains: 0.3},
			MatchedDomains: []string{"azure"}, Eligible: false, Role: contract.RoleCandidate,
			Gates: []contract.Gate{{Gate: "state", Reason: "its breaker is open"}},
		}},
		CandidatesTotal: 1, RegistryVersion: "sha256:1234",
	}
	cases := []CaseResult{
		{
			ID: "review-python", File: "cases.yaml", Line: 2, Tags: []string{"en"}, Input: "Review this python module", Passed: true,
			Expect: Expect{Outcome: Dispatch, Intent: "code_review"},
			Actual: Actual{Outcome: Dispatch, Agents: []string{"quality_agent"}, Intent: "code_review", Domains: []string{"python"}, Confidence: 0.93, Source: "lexical"},
		},
		{
			ID: "custos-pt", File: "cases.yaml", Line: 7, Split: Test, Tags: []string{"pt"}, Input: "Analise os custos\nda conta azure", Passed: false,
			Expect:      Expect{Outcome: Dispatch, Agents: []string{"billing_agent"}, Intent: "cost_analysis"},
			Actual:      Actual{Outcome: FallbackB, Intent: "cost_analysis", Domains: []string{"azure"}, Confidence: 0.71, Source: "lexical", Reason: "no_match"},
			Differences: []string{"outcome: got fallback_b, want dispatch"}, Because: `name "billing" speaks for cost_analysis (0.50)`, Decision: decision,
		},
		{
			ID: "weather", File: "more.csv", Line: 1, Tags: []string{"en", "oos"}, Input: "what is the weather", Passed: true,
			Expect: Expect{Outcome: AnyFallback, Agents: []string{}},
			Actual: Actual{Outcome: FallbackB, Intent: contract.Unknown, Confidence: 0.12, Source: "lexical"},
		},
		{
			ID: "deploy", File: "more.csv", Line: 2, Tags: []string{"en"}, Input: "deploy it", Passed: false,
			Expect:      Expect{Intent: "deployment"},
			Actual:      Actual{Outcome: Dispatch, Agents: []string{"quality_agent"}, Intent: "code_review", Confidence: 0.55, Source: "lexical"},
			Differences: []string{"intent: got code_review, want deployment"},
		},
		{
			ID: "typo", File: "more.csv", Line: 3, Tags: []string{"en"}, Input: "reveiw", KnownFailure: "two letters are swapped",
			Expect:      Expect{Outcome: Dispatch},
			Actual:      Actual{Outcome: FallbackB, Intent: contract.Unknown, Source: "lexical"},
			Differences: []string{"outcome: got fallback_b, want dispatch"}, Decision: decision,
		},
	}
	return &Report{
		Version: reportVersion, Registry: "sha256:1234", Classifier: Classifier{Mode: "lexical"}, Interrupted: true,
		Summary: Summary{
			Planned: 6, Total: 5, Passed: 2, Known: 1, Failed: 2,
			ByOutcome: []NamedCount{{"dispatch", 2}, {"fallback_b", 3}},
			BySource:  []NamedCount{{"lexical", 5}},
			ByTag:     []TagCount{{"en", 4, 2}, {"oos", 1, 1}, {"pt", 1, 0}},
		},
		Confusion: Confusion{
			Intents: []ConfusionCell{{"code_review", "code_review", 1}, {"cost_analysis", "cost_analysis", 1}, {"deployment", "code_review", 1}},
			Agents:  []ConfusionCell{{"billing_agent", "fallback_b", 1}},
		},
		Confidences: []ConfidencePoint{{"review-python", 0.93, true}, {"custos-pt", 0.71, true}, {"weather", 0.12, true}, {"deploy", 0.55, false}},
		Cases:       cases,
	}
}

func page(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWriteHTML_Golden compares the page with testdata. After -update, check the page in a browser.
func TestWriteHTML_Golden(t *testing.T) {
	file := filepath.Join("testdata", "report.html")
	got := page(t, sampleReport())
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := page(t, sampleReport()); again != got {
		t.Error("got another page for the same report, want the same")
	}
}

func TestWriteHTML_EmptyReport(t *testing.T) {
	got := page(t, &Report{Classifier: Classifier{Mode: "llm", Provider: "gemini", Model: "m", PromptVersion: "v1"}})
	for _, want := range []string{"0 of 0 cases passed", "llm, gemini m, prompts v1", "No case has a confidence to draw.", "No case carries a tag."} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q", want)
		}
	}
	if strings.Contains(got, "<svg") || strings.Contains(got, "NaN") {
		t.Error("got a plot without points, want none")
	}
}

// TestWriteHTML_LoadsNothing checks that the page has no element or attribute that fetches or
// executes, and a policy that forbids both.
func TestWriteHTML_LoadsNothing(t *testing.T) {
	got := page(t, hostileReport(`https://evil.example/x.png`))
	for _, bad := range []string{
		`(?i)<(script|link|img|iframe|object|embed|audio|video|source|base|form|use|image|foreignobject|animate|a)\b`,
		`(?i)<[^>]*\s(src|srcset|href|xlink:href|style|action|background|on[a-z]+)\s*=`,
		`(?i)@import|url\(`,
	} {
		if found := regexp.MustCompile(bad).FindString(got); found != "" {
			t.Errorf("got %q, want nothing that fetches or executes", found)
		}
	}
	_, rest, _ := strings.Cut(got, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	policy := "default-src &#39;none&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;; style-src &#39;sha256-" + strings.ReplaceAll(base64.StdEncoding.EncodeToString(sum[:]), "+", "&#43;") + "&#39;"
	if !strings.Contains(got, `content="`+policy+`"`) {
		t.Errorf("got no policy with the hash of the style, want %s", policy)
	}
}

// hostileReport contains the text in every untrusted field.
func hostileReport(text string) *Report {
	r := sampleReport()
	r.Registry, r.Classifier.Mode, r.Classifier.Model = text, text, text
	r.Summary.ByTag[0].Tag, r.Summary.ByOutcome[0].Name = text, text
	r.Confusion.Intents[0].Expected, r.Confusion.Agents[0].Got = text, text
	for i := range r.Cases {
		c := &r.Cases[i]
		c.ID, c.File, c.Split, c.Input, c.Tags, c.Differences = text, text, text, text, []string{text}, []string{text}
		c.Expect.Intent, c.Actual.Intent, c.Actual.Agents, c.Actual.Source = text, text, []string{text}, text
		if c.Decision != nil {
			c.Decision.Classification.Intent = text
			c.Decision.Candidates[0].AgentID = text
			c.Decision.Candidates[0].Gates[0].Reason = text
		}
	}
	return r
}

// TestWriteHTML_Escapes checks that the tags of the page do not depend on the texts.
func TestWriteHTML_Escapes(t *testing.T) {
	tags := regexp.MustCompile(`<[^>]*>`)
	plainTags := len(tags.FindAllString(page(t, hostileReport("x")), -1))
	hostile := []string{
		`<script>alert(1)</script>`, `</pre><img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `</style><style>*{display:none}`,
		`{{.Report}}`, `<!--`, `]]>`, `javascript:alert(1)`, `' onmouseover='x`, "\x00\xff<b>", `&lt;b&gt;`, `\"</title>`,
	}
	for _, text := range hostile {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			got := page(t, hostileReport(text))
			if n := len(tags.FindAllString(got, -1)); n != plainTags {
				t.Errorf("got %d tags, want %d", n, plainTags)
			}
			if strings.ContainsAny(text, "<>") && strings.Contains(got, text) {
				t.Errorf("got the text unescaped")
			}
		})
	}
}

func TestMatrix(t *testing.T) {
	t.Run("small", func(t *testing.T) {
		m := newHTMLMatrix([]ConfusionCell{{"a", "a", 3}, {"a", "b", 1}, {"c", "b", 2}})
		if diff := cmp.Diff([]string{"a", "b", "c"}, m.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		want := []htmlMatrixCell{{3, "heat3 right"}, {1, "heat1"}, {0, ""}}
		if diff := cmp.Diff(want, m.Rows[0].Cells); diff != "" {
			t.Errorf("row a (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]ConfusionCell{{"c", "b", 2}, {"a", "b", 1}}, m.Worst); diff != "" {
			t.Errorf("worst (-want +got):\n%s", diff)
		}
		if m.Right != 3 || m.Total != 6 {
			t.Errorf("got %d of %d right, want 3 of 6", m.Right, m.Total)
		}
	})
	t.Run("too many labels", func(t *testing.T) {
		var cells []ConfusionCell
		for i := range 40 {
			cells = append(cells, ConfusionCell{fmt.Sprintf("l%02d", i), fmt.Sprintf("l%02d", (i+1)%40), 40 - i})
		}
		m := newHTMLMatrix(cells)
		if m.Labels != nil || m.Distinct != 40 || len(m.Worst) != maxWorst || m.Left != 40-maxWorst || m.Worst[0].Count != 40 {
			t.Errorf("got %d labels of %d, %d worst and %d omitted", len(m.Labels), m.Distinct, len(m.Worst), m.Left)
		}
		r := sampleReport()
		r.Confusion.Intents = cells
		if got := page(t, r); !strings.Contains(got, "40 labels are too many for a matrix. 0 of 820 are right.") || !strings.Contains(got, "and 25 pairs more") {
			t.Error("got a page without the number of omitted labels")
		}
	})
}

// TestPlots_StayInsideTheirFrame checks that all coordinates are finite and inside the frame.
func TestPlots_StayInsideTheirFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rowsOf(t)
		for i := range rows {
			if rapid.Bool().Draw(t, "unclaimed") {
				rows[i].Confidence = unclaimedConfidence
			}
		}
		inside := func(f *plotFrame, x, y float64) {
			const slack = 1e-6
			if !(x >= f.Left-slack && x <= f.Right+slack && y >= f.Top-slack && y <= f.Bottom+slack) {
				t.Fatalf("got (%v, %v) outside of %+v", x, y, f)
			}
		}
		if p := plotRisk(rows); p != nil {
			for at := range strings.FieldsSeq(p.Line) {
				var x, y float64
				if _, err := fmt.Sscanf(at, "%f,%f", &x, &y); err != nil {
					t.Fatalf("%q: %v", at, err)
				}
				inside(&p.plotFrame, x, y)
			}
			if p.Widest != nil {
				inside(&p.plotFrame, p.Widest.X, p.Widest.Y)
			}
		}
		if p := plotHistogram(rows); p != nil {
			for _, b := range p.Bars {
				inside(&p.plotFrame, b.X, b.Y)
				inside(&p.plotFrame, b.X+b.W, b.Y+b.H)
			}
		}
	})
}

func TestScoredConfidences(t *testing.T) {
	rows := scoredConfidences(sampleReport())
	want := []scoredRow{{0.93, true, false}, {0.71, true, false}, {unclaimedConfidence, true, false}, {0.55, false, false}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p := plotRisk(rows)
	if p == nil || p.Widest == nil || p.Widest.Label != "50.0 % from 0.71 on" {
		t.Errorf("got %+v, want half of the requests accepted from 0.71 on", p)
	}
	if !strings.Contains(p.Unclaimed, "1 of 4") {
		t.Errorf("got %q, want the unknown one counted", p.Unclaimed)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteHTML_ReturnsWriteErrors(t *testing.T) {
	if err := WriteHTML(brokenWriter{}, sampleReport()); err == nil {
		t.Error("got no error, want the writer's")
	}
}

func BenchmarkHTML(b *testing.B) {
	r := sampleReport()
	for len(r.Cases) < 1000 {
		r.Cases = append(r.Cases, r.Cases[:4]...)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := WriteHTML(io.Discard, r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestPlotRisk_RoundTicks(t *testing.T) {
	for _, wrong := range []int{5, 10, 25, 50, 100} { // of 100; each has another axis
		rows := make([]scoredRow, 100)
		for i := range rows {
			rows[i] = scoredRow{Confidence: 0.5, Correct: i >= wrong}
		}
		for _, tick := range plotRisk(rows).Y {
			if len(tick.Label) > len("100 %") {
				t.Errorf("%d %% wrong: got label %q, want a round one", wrong, tick.Label)
			}
		}
	}
}

// TestWriteHTML_ReplacesInvisibleCharacters checks that invisible characters
// and bidirectional marks are replaced.
func TestWriteHTML_ReplacesInvisibleCharacters(t *testing.T) {
	got := page(t, hostileReport("a\b\x1b[2J\u202eb\u2066\u009f\tc\r\nd\xff"))
	for _, bad := range []string{"\b", "\x1b", "\u202e", "\u2066", "\u009f", "\r", "\xff"} {
		if strings.Contains(got, bad) {
			t.Errorf("got %q in the page", bad)
		}
	}
	if want := "a\ufffd\ufffd[2J\ufffdb\ufffd\ufffd\tc\nd\ufffd"; !strings.Contains(got, want) {
		t.Errorf("got no %q in the page", want)
	}
}

func TestWriteHTML_BoundsFailures(t *testing.T) {
	r := sampleReport()
	failed := r.Cases[1]
	for len(r.Cases) < maxFailures+10 {
		r.Cases = append(r.Cases, failed)
	}
	got := page(t, r) // the sample has passed cases as well
	if n := strings.Count(got, `<pre class="said">`); n != maxFailures {
		t.Errorf("got %d failures in full, want %d", n, maxFailures)
	}
	if want := "and 7 more; the JSON report has all"; !strings.Contains(got, want) {
		t.Errorf("got no %q", want)
	}
	if strings.Contains(page(t, sampleReport()), "more; the JSON report") {
		t.Error("got a note about omitted failures on a page with two")
	}
}
