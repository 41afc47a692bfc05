package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// registryInForce is the part of the response of GET /api/v1/registry that a registry file
// can contain. The agents are not decoded, so that the file has the members of the router's
// version.
type registryInForce struct {
	Agents   []map[string]json.RawMessage `json:"agents"`
	Aliases  json.RawMessage              `json:"domain_aliases"`
	Routing  json.RawMessage              `json:"routing"`
	Fallback json.RawMessage              `json:"fallback"`
}

// exportedRegistry is a registry file without grants: the agents that registered themselves are
// in it as they were granted.
type exportedRegistry struct {
	Clients  map[string]map[string]json.RawMessage `json:"clients"`
	Aliases  json.RawMessage                       `json:"domain_aliases"`
	Routing  json.RawMessage                       `json:"routing"`
	Fallback json.RawMessage                       `json:"fallback"`
}

func newAgentsExportCommand() *cobra.Command {
	var flags routerflags.Server
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the registry in force as a registry file, with the agents that registered themselves",
		Long: "Print the registry in force as a registry file in JSON, which YAML parsers accept. It contains the agents of\n" +
			"the router's file and those that registered themselves, within their grants, so that golden cases,\n" +
			"lint and route --dry-run can be about both. Only for a caller with the scope admin it contains the\n" +
			"addresses of agents.",
		Example: `  caprouter agents export > registry.json
  caprouter golden run cases.yaml --registry registry.json`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			var registry registryInForce
			if err := c.GetResource(cmd.Context(), "/api/v1/registry", nil, &registry); err != nil {
				return err
			}
			return printRegistryFile(cmd.OutOrStdout(), &registry)
		},
	}
	flags.Register(cmd)
	return cmd
}

func printRegistryFile(out io.Writer, registry *registryInForce) error {
	file := exportedRegistry{
		Clients: map[string]map[string]json.RawMessage{},
		Aliases: registry.Aliases, Routing: registry.Routing, Fallback: registry.Fallback,
	}
	for _, agent := range registry.Agents {
		var id string
		if err := strictjson.Unmarshal(agent["id"], &id); err != nil {
			return err
		}
		delete(agent, "id")
		if hidden, err := hasHiddenAddress(agent["endpoint"]); err != nil {
			return err
		} else if hidden {
			delete(agent, "endpoint")
		}
		file.Clients[id] = agent
	}
	text, err := strictjson.MarshalIndent(file)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

// hasHiddenAddress reports whether the caller may not see the URL or the action that the endpoint
// needs. Such an endpoint is not valid in a file.
func hasHiddenAddress(endpoint json.RawMessage) (bool, error) {
	if endpoint == nil {
		return false, nil
	}
	var members map[string]json.RawMessage
	if err := strictjson.Unmarshal(endpoint, &members); err != nil {
		return false, err
	}
	switch string(members["protocol"]) {
	case `"` + contract.ProtocolHTTP + `"`:
		return members["url"] == nil, nil
	case `"` + contract.ProtocolMCP + `"`:
		return members["action"] == nil, nil
	}
	return false, nil
}
