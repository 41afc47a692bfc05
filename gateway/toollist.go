package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caprouter/caprouter/gateway/mcpclient"
)

// listTools replaces the tools by those that the server lists.
func (s *server) listTools(ctx context.Context, session *mcpclient.Session) error {
	changes := session.Changes()
	list, err := session.Tools(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("the server did not list its tools in time")
		}
		return fmt.Errorf("list tools: %w", err)
	}
	if patterns := unmatched(s.declared.Tools, list); len(patterns) > 0 {
		s.log.WarnContext(ctx, "patterns in tools.include or tools.exclude match no tool of the server", "patterns", patterns)
	}
	tools, err := newTools(&s.declared, list)
	if err == nil {
		err = s.checkPins(ctx, tools)
	}
	if err != nil {
		return err
	}
	s.listContents(ctx, session) // before the change is reported
	s.setTools(tools, changes)
	return nil
}

// setTools replaces the tools, of a server that had reported this many changes before it listed them.
func (s *server) setTools(tools map[string]*tool, listed uint64) {
	s.mu.Lock()
	before := s.tools
	s.tools, s.listed = tools, listed
	s.changes.Broadcast()
	s.mu.Unlock()
	s.reportQuarantined(before, tools)
	s.reportUnusable(before, tools)
	s.onStatus()
}

// reportUnusable logs the tools that cannot be called, unless that was logged before.
func (s *server) reportUnusable(before, tools map[string]*tool) {
	var unusable []*tool
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if t, old := tools[name], before[name]; t.Error != "" && (old == nil || old.Error != t.Error) {
			unusable = append(unusable, t)
		}
	}
	logged, further := splitLogged(unusable)
	for _, t := range logged {
		s.log.Warn("a tool cannot be called", "tool", t.Action, "error", t.Error)
	}
	if further > 0 {
		s.log.Warn("further tools cannot be called", "tools", further)
	}
}

// maxLogged bounds the tools of one list that are logged one by one: a server may change all of
// them several times a second.
const maxLogged = 5

// splitLogged returns the tools that are logged one by one, and the number of the others.
func splitLogged(tools []*tool) (logged []*tool, further int) {
	n := min(len(tools), maxLogged)
	return tools[:n], len(tools) - n
}

// findTool returns the tool, or nil.
func (s *server) findTool(name string) *tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[name]
}

// waitFresh returns when the tools are those that the server has after the changes that it
// has reported so far, or when the connection is lost.
func (s *server) waitFresh(ctx context.Context) {
	s.mu.Lock()
	first, _ := s.link.(*sessionLink)
	s.mu.Unlock()
	if first == nil {
		return
	}
	for reported := first.Changes(); ; {
		s.mu.Lock()
		l, listed, changed := s.link, s.listed, s.changes.Next()
		s.mu.Unlock()
		if l != first || listed >= reported {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// currentTool returns the tool with the name, or nil if the server has none. The error is
// why that is not known.
func (s *server) currentTool(ctx context.Context, name string) (*tool, error) {
	select {
	case <-s.attempted.done():
	case <-ctx.Done():
	}
	s.waitFresh(ctx)
	if t := s.findTool(name); t != nil {
		return t, nil
	}
	if _, err := s.waitLink(ctx); err != nil {
		return nil, err
	}
	s.waitFresh(ctx)
	return s.findTool(name), nil
}

// knownTool returns the tool, or nil if the server has none. If known is false, the server
// has not listed its tools yet.
func (s *server) knownTool(name string) (t *tool, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[name], s.tools != nil
}
