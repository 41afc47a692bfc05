package golden

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// The part of the JUnit XML format that CI servers read, without times, so that
// the output is deterministic.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	File    string     `xml:"file,attr,omitempty"`
	Line    int        `xml:"line,attr,omitempty"`
	Failure *junitNote `xml:"failure"`
	Skipped *junitNote `xml:"skipped"` // a known failure
	Error   *junitNote `xml:"error"`
}

type junitNote struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML: one suite per file, one test per
// case. An interruption is an additional error, so that CI does not accept an
// incomplete run.
func WriteJUnit(w io.Writer, r *Report) error {
	all := junitSuites{Name: "caprouter golden", Tests: r.Summary.Total, Failures: r.Summary.Failed, Skipped: r.Summary.Known}
	at := map[string]int{}
	for i := range r.Cases {
		c := &r.Cases[i]
		n, ok := at[c.File]
		if !ok {
			n = len(all.Suites)
			at[c.File] = n
			all.Suites = append(all.Suites, junitSuite{Name: c.File})
		}
		suite := &all.Suites[n]
		suite.Tests++
		test := junitCase{Name: c.ID, Class: c.File, File: c.File, Line: c.Line}
		switch {
		case c.Failed():
			suite.Failures++
			note, err := junitFailure(c)
			if err != nil {
				return err
			}
			test.Failure = note
		case !c.Passed:
			suite.Skipped++
			test.Skipped = &junitNote{Type: "known_failure", Message: c.KnownFailure}
		}
		suite.Cases = append(suite.Cases, test)
	}
	if r.Interrupted {
		all.Tests++
		all.Errors++
		all.Suites = append(all.Suites, junitSuite{Name: "golden run", Tests: 1, Errors: 1, Cases: []junitCase{{
			Name: "complete", Class: "golden run",
			Error: &junitNote{Type: "interrupted", Message: fmt.Sprintf("interrupted: %d of %d cases were run", r.Summary.Total, r.Summary.Planned)},
		}}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// junitFailure describes a failed case.
func junitFailure(c *CaseResult) (*junitNote, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "input: %s\n", c.Input)
	for _, why := range c.Differences {
		fmt.Fprintf(&b, "%s\n", why)
	}
	if c.Because != "" {
		fmt.Fprintf(&b, "because %s\n", c.Because)
	}
	if c.Decision != nil {
		decision, err := strictjson.Marshal(c.Decision)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "decision: %s\n", decision)
	}
	return &junitNote{Type: "routing", Message: strings.Join(c.Differences, "; "), Text: b.String()}, nil
}
