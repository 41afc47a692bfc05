package planner

import (
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/ranking"
	"github.com/caprouter/caprouter/orchestrator"
)

// shortlistTools returns the tools that fit the goal best, ordered by action: those of the
// previous plan, then by rank, then the others, up to count tools and a size.
func shortlistTools(goal string, tools []*orchestrator.Tool, used []string, count, size int) []*orchestrator.Tool {
	byAction := map[string]*orchestrator.Tool{}
	docs := make([]ranking.Document, len(tools))
	for i, t := range tools {
		byAction[t.Action()] = t
		docs[i] = ranking.Document{Name: t.Action(), Description: t.Description}
	}
	order := slices.Clone(used)
	if len(tools) > count || sizeOf(tools) > size {
		for _, ranked := range ranking.New(docs).Rank(goal) {
			order = append(order, ranked.Name)
		}
	}
	for _, d := range docs {
		order = append(order, d.Name)
	}
	var list []*orchestrator.Tool
	for _, action := range order {
		t := byAction[action]
		if t == nil { // listed already
			continue
		}
		delete(byAction, action)
		if n := sizeOf([]*orchestrator.Tool{t}); len(list) < count && n <= size {
			size -= n
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *orchestrator.Tool) int { return strings.Compare(a.Action(), b.Action()) })
	return list
}

// sizeOf returns the bytes that tools have in a prompt.
func sizeOf(tools []*orchestrator.Tool) int {
	n := 0
	for _, t := range tools {
		n += len(t.Action()) + len(t.Description) + len(t.InputSchema)
	}
	return n
}
