package examples_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

// alertRules is a file of rules for Prometheus, with the keys that ours has.
type alertRules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

var (
	selector = regexp.MustCompile(`\b(caprouter_[a-z_]+)(?:\{(\w+)(=~?)"([^"]*)"\})?`)
	// Words of PromQL that the expressions may contain besides selectors.
	promQLWords = []string{"sum", "max", "rate", "increase", "or"}
)

// The expressions of the alerts select series that the router exports, and deployment.md has a
// row for each alert.
func TestAlerts_SelectExportedMetrics(t *testing.T) {
	var file alertRules
	if err := strictyaml.Decode("alerts.yaml", []byte(readFile(t, "alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	exported := scrapeMetrics(t)
	var got []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			after := "at once"
			if r.For != "" {
				after = r.For
				if _, err := time.ParseDuration(r.For); err != nil {
					t.Errorf("%s: for: %v", r.Alert, err)
				}
			}
			got = append(got, fmt.Sprintf("| %#q | %s | %s |", r.Alert, r.Labels["severity"], after))
			if r.Annotations["summary"] == "" {
				t.Errorf("%s: got no summary", r.Alert)
			}
			for _, m := range selector.FindAllStringSubmatch(r.Expr, -1) {
				for value := range strings.SplitSeq(m[4], "|") {
					series := m[1] + "[ {]"
					if m[2] != "" {
						series = m[1] + `\{([^}]*,)?` + m[2] + `="` + value + `"`
					}
					if !regexp.MustCompile("(?m)^" + series).MatchString(exported) {
						t.Errorf("%s: got %s selected, which is not exported", r.Alert, m[0])
					}
				}
			}
			rest := selector.ReplaceAllString(strings.Replace(r.Expr, `up{job="caprouter"}`, "", 1), "")
			rest = regexp.MustCompile(`\[\d+[mh]\]`).ReplaceAllString(rest, "")
			for _, word := range regexp.MustCompile(`[a-zA-Z_]\w*`).FindAllString(rest, -1) {
				if !slices.Contains(promQLWords, word) {
					t.Errorf("%s: got the unknown word %s in its expression", r.Alert, word)
				}
			}
			if strings.Count(rest, "(") != strings.Count(rest, ")") || !regexp.MustCompile(`(>|==) [\d.]+\s*$|> [\d.]+ \* sum\(`).MatchString(rest) {
				t.Errorf("%s: got expression %q, want a comparison", r.Alert, r.Expr)
			}
		}
	}
	want := regexp.MustCompile("(?m)^\\| `Caprouter[^|]*\\|[^|]*\\|[^|]*\\|").FindAllString(readDoc(t, "deployment.md"), -1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts (-deployment.md +alerts.yaml):\n%s", diff)
	}
}
