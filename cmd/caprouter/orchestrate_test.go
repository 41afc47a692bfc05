package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpandGoal_LeavesSubcommands(t *testing.T) {
	for _, tt := range []struct{ args, want []string }{
		{[]string{"mcp list the files"}, []string{"orchestrate", "list the files"}},
		{[]string{"mcp list the files", "--json"}, []string{"orchestrate", "list the files", "--json"}},
		{[]string{"mcp list"}, []string{"mcp", "list"}},
		{[]string{"mcp", "list"}, []string{"mcp", "list"}},
		{[]string{"mcp:", "list", "files", "--plan", "a.json"}, []string{"orchestrate", "list files", "--plan", "a.json"}},
		{[]string{"mcp:list files"}, []string{"orchestrate", "list files"}},
		{[]string{"mcp: list"}, []string{"orchestrate", "list"}},
		{[]string{"route", "mcp: x"}, []string{"route", "mcp: x"}},
		{nil, nil},
	} {
		if diff := cmp.Diff(tt.want, expandGoal(tt.args)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}
