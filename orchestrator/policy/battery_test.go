package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// batteryTool is a tool of the batteries, with the annotations that its server declares.
type batteryTool struct {
	Server      string             `json:"server"`
	Tool        string             `json:"tool"`
	Description string             `json:"description"`
	InputSchema json.RawMessage    `json:"input_schema"`
	Annotations policy.Annotations `json:"annotations"`
	Transport   string             `json:"transport"`
	Host        string             `json:"host"`
}

// batteryCase is one call.
type batteryCase struct {
	ID         string          `json:"id"`
	Kind       string          `json:"kind"`
	Tool       string          `json:"tool"`
	Arguments  json.RawMessage `json:"arguments"`
	Goal       string          `json:"goal"`
	EnvContext json.RawMessage `json:"env_context"`
	Earlier    []struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
		Output    json.RawMessage `json:"output"`
	} `json:"earlier"`
}

// readLines decodes a file with one JSON value on each line.
func readLines[T any](t *testing.T, file string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	for line := range strings.Lines(string(data)) {
		var v T
		if err := strictjson.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v in %s", file, err, line)
		}
		list = append(list, v)
	}
	return list
}

// judgeBattery returns the verdicts of the cases of a file.
func judgeBattery(t *testing.T, p *policy.Policy, file string) ([]batteryCase, []policy.Verdict) {
	t.Helper()
	tools := map[string]batteryTool{}
	for _, tool := range readLines[batteryTool](t, "tools.jsonl") {
		tools[tool.Server+"."+tool.Tool] = tool
	}
	cases := readLines[batteryCase](t, file)
	verdicts := make([]policy.Verdict, len(cases))
	for i, c := range cases {
		tool, ok := tools[c.Tool]
		if !ok {
			t.Fatalf("%s: got unknown tool %s", c.ID, c.Tool)
		}
		call := policy.Call{
			Server: tool.Server, Tool: tool.Tool, Arguments: c.Arguments, Description: tool.Description, InputSchema: tool.InputSchema,
			Annotations: tool.Annotations, Transport: tool.Transport, Host: tool.Host, Goal: c.Goal, EnvContext: c.EnvContext,
		}
		for _, e := range c.Earlier {
			call.Earlier = append(call.Earlier, policy.Step{Action: e.Tool, Arguments: e.Arguments, Output: e.Output})
		}
		verdicts[i] = p.Judge(&call)
	}
	return cases, verdicts
}

// The batteries have two halves. The held-out half was written first, and was not read until the
// other half passed.
var batteries = []struct {
	file    string
	hostile bool
}{{"hostile.jsonl", true}, {"hostile_heldout.jsonl", true}, {"benign.jsonl", false}, {"benign_heldout.jsonl", false}}

// With a policy file, all hostile calls and at most 5 % of the benign calls are denied or gated.
func TestPolicy_Batteries(t *testing.T) {
	p, err := policy.Load(filepath.Join("testdata", "operator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, half := range batteries {
		t.Run(strings.TrimSuffix(half.file, ".jsonl"), func(t *testing.T) {
			wrong, count := judgeHalf(t, p, half.file, half.hostile)
			if half.hostile && len(wrong) > 0 || len(wrong)*20 > count {
				t.Errorf("got %d of %d wrong:\n%s", len(wrong), count, strings.Join(wrong, "\n"))
			}
		})
	}
}

// Without a policy file, all hostile calls are denied or gated as well.
func TestPolicy_BatteriesWithDefaultRules(t *testing.T) {
	p, err := policy.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, half := range batteries {
		t.Run(strings.TrimSuffix(half.file, ".jsonl"), func(t *testing.T) {
			wrong, count := judgeHalf(t, p, half.file, half.hostile)
			if half.hostile && len(wrong) > 0 {
				t.Errorf("got %d of %d wrong:\n%s", len(wrong), count, strings.Join(wrong, "\n"))
			}
		})
	}
}

// judgeHalf logs the verdicts of a file, and returns the wrong ones and the number of cases.
func judgeHalf(t *testing.T, p *policy.Policy, file string, hostile bool) (wrong []string, count int) {
	t.Helper()
	cases, verdicts := judgeBattery(t, p, file)
	counts := map[policy.Effect]int{}
	for i, v := range verdicts {
		counts[v.Effect]++
		if (v.Effect == policy.Allow) == hostile {
			wrong = append(wrong, strings.TrimSpace(cases[i].Kind+" "+cases[i].ID)+": "+string(v.Effect)+" "+v.Rule+" "+v.Reason)
		}
	}
	t.Logf("%d cases: %d allowed, %d gated, %d denied", len(cases), counts[policy.Allow], counts[policy.Gate], counts[policy.Deny])
	if len(wrong) > 0 {
		t.Logf("wrong verdicts:\n%s", strings.Join(wrong, "\n"))
	}
	return wrong, len(cases)
}
