package gateway

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/pins"
)

// PendingTool is a tool whose definition waits for approval.
type PendingTool struct {
	Action   string         `json:"tool_name"`
	Server   string         `json:"server"`
	Hash     string         `json:"hash"`                  // of the new definition
	Pinned   string         `json:"pinned_hash,omitempty"` // "" = the tool is new
	Diff     []string       `json:"diff"`                  // see pins.Diff
	Findings []pins.Finding `json:"findings,omitempty"`
}

// PendingTools returns the tools that are quarantined, ordered by name.
func (g *Gateway) PendingTools() []PendingTool {
	var list []PendingTool
	for _, s := range *g.servers.Load() {
		s.mu.Lock()
		tools := s.tools
		s.mu.Unlock()
		for _, t := range tools {
			if t.quarantine == nil {
				continue
			}
			p := PendingTool{Action: t.Action, Server: s.declared.ID, Hash: t.quarantine.Hash, Findings: t.Findings}
			var old []byte
			if pinned := t.quarantine.Pinned; pinned != nil {
				p.Pinned, old = pinned.Hash, pinned.Definition
			}
			p.Diff = pins.Diff(old, t.definition)
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b PendingTool) int { return cmp.Compare(a.Action, b.Action) })
	return list
}

// minHash is the length of the shortest prefix of a hash that identifies a definition.
const minHash = 12

// ApproveTool permits calls of a quarantined tool. hash is that of the definition that was
// shown, or the beginning of it, so that a definition that has changed in the meantime is
// not approved. Errors are *contract.Error, or of the store of the pins.
func (g *Gateway) ApproveTool(ctx context.Context, action, hash string) error {
	for _, s := range *g.servers.Load() {
		name, ok := strings.CutPrefix(action, s.declared.ID+".")
		if !ok {
			continue
		}
		t := s.findTool(name)
		if t == nil {
			continue
		}
		switch {
		case t.quarantine == nil:
			return &contract.Error{Code: contract.CodeConflict, Message: action + " is not quarantined"}
		case len(hash) < minHash || !strings.HasPrefix(t.quarantine.Hash, hash):
			return &contract.Error{Code: contract.CodePreconditionFailed, Message: fmt.Sprintf("the definition of %s has the hash %s: compare it again", action, t.quarantine.Hash)}
		}
		if err := g.cfg.Pins.Pin(ctx, action, t.definition); err != nil {
			return err
		}
		s.releaseTool(t)
		return nil
	}
	return &contract.Error{Code: contract.CodeNotFound, Message: fmt.Sprintf("there is no tool %q", action)}
}

// releaseTool ends the quarantine of a tool.
func (s *server) releaseTool(t *tool) *tool {
	released := *t
	released.quarantine, released.State = nil, ""
	s.mu.Lock()
	current := s.tools[t.Name] == t // not listed again since
	if current {
		s.tools = maps.Clone(s.tools)
		s.tools[t.Name] = &released
	}
	s.mu.Unlock()
	if current {
		s.onStatus()
	}
	return &released
}

// checkPins quarantines the tools whose definition is not pinned.
func (s *server) checkPins(ctx context.Context, tools map[string]*tool) error {
	for _, t := range tools {
		if t.definition == nil {
			continue
		}
		v, err := s.cfg.Pins.Check(ctx, t.Action, t.definition, &s.firstUse)
		if err != nil {
			return err
		}
		if !v.Allowed {
			t.quarantine, t.State = &v, ToolQuarantined
		}
	}
	return nil
}

// reportQuarantined reports tools that were not quarantined with this definition before.
func (s *server) reportQuarantined(before, tools map[string]*tool) {
	var quarantined []*tool
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		t, old := tools[name], before[name]
		if t.quarantine == nil || old != nil && old.quarantine != nil && old.quarantine.Hash == t.quarantine.Hash {
			continue
		}
		quarantined = append(quarantined, t)
		s.events.emit(contract.GatewayEvent{
			Type: contract.ToolQuarantinedEvent, Server: s.declared.ID, Tool: t.Action, Suggestion: approveSuggestion(t),
		})
	}
	logged, further := splitLogged(quarantined)
	for _, t := range logged {
		s.log.Warn("the definition of a tool is not approved", "tool", t.Action, "hash", t.quarantine.Hash)
	}
	if further > 0 {
		s.log.Warn("the definitions of further tools are not approved", "tools", further)
	}
}

// checkQuarantine returns the tool if it may be called. Another process that shares the
// pins may have approved it.
func (s *server) checkQuarantine(ctx context.Context, t *tool) (*tool, error) {
	if t.quarantine == nil {
		return t, nil
	}
	if v, err := s.cfg.Pins.Check(ctx, t.Action, t.definition, nil); err == nil && v.Allowed {
		return s.releaseTool(t), nil
	}
	return nil, severeError(contract.ActionQuarantined, fmt.Sprintf("the definition of %s is not approved", t.Action), approveSuggestion(t))
}

func approveSuggestion(t *tool) string {
	return fmt.Sprintf("compare it with the approved one, and approve the hash %s", t.quarantine.Hash[:minHash])
}
