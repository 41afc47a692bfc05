package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Static is the planner whose plan is part of the request.
type Static struct{ Raw json.RawMessage }

// Plan implements Planner.
func (s Static) Plan(context.Context, *PlanRequest) (*contract.Plan, error) {
	if len(s.Raw) == 0 {
		return nil, &PlanError{Reason: contract.ReasonPlannerNotConfigured, Message: "the planner static needs constraints.plan"}
	}
	plan, mistakes := ParsePlan(s.Raw)
	if len(mistakes) > 0 {
		return nil, &PlanError{Reason: contract.ReasonPlanInvalid, Message: "the plan is not valid", Details: mistakes}
	}
	return plan, nil
}

// File is a ServerRegistry whose content is fixed, for example to check plans without
// servers. It is immutable.
type File struct {
	servers []fileServer
}

type fileServer struct {
	Name      string     `json:"name"`
	Transport string     `json:"transport,omitempty"`
	Host      string     `json:"host,omitempty"`
	NeedsAuth bool       `json:"needs_auth,omitempty"`
	Tools     []fileTool `json:"tools"`
}

type fileTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Repeatable   bool            `json:"repeatable,omitempty"`
}

// ParseFile decodes a registry in JSON: {"servers":[{"name","transport","tools":[…]}]},
// with tools as a server lists them.
func ParseFile(raw []byte) (*File, error) {
	var in struct {
		Servers []fileServer `json:"servers"`
	}
	if err := strictjson.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("decode a registry of MCP servers: %w", err)
	}
	slices.SortFunc(in.Servers, func(a, b fileServer) int { return cmp.Compare(a.Name, b.Name) })
	return &File{servers: in.Servers}, nil
}

// ListServers implements ServerRegistry.
func (f *File) ListServers(context.Context) ([]Server, error) {
	list := make([]Server, len(f.servers))
	for i, s := range f.servers {
		list[i] = Server{Name: s.Name, Transport: cmp.Or(s.Transport, "stdio"), Host: s.Host, NeedsAuth: s.NeedsAuth}
	}
	return list, nil
}

// ListTools implements ServerRegistry.
func (f *File) ListTools(_ context.Context, server string) ([]string, error) {
	for _, s := range f.servers {
		if s.Name == server {
			names := make([]string, len(s.Tools))
			for i := range s.Tools {
				names[i] = s.Tools[i].Name
			}
			slices.Sort(names)
			return names, nil
		}
	}
	return nil, fmt.Errorf("server %q: %w", server, ErrNotFound)
}

// GetToolSchema implements ServerRegistry.
func (f *File) GetToolSchema(_ context.Context, server, tool string) (*Tool, error) {
	for _, s := range f.servers {
		for i := range s.Tools {
			if t := &s.Tools[i]; s.Name == server && t.Name == tool {
				return &Tool{
					Server: server, Name: tool, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
					Annotations: t.Annotations, Repeatable: t.Repeatable,
				}, nil
			}
		}
	}
	return nil, fmt.Errorf("%s.%s: %w", server, tool, ErrNotFound)
}
