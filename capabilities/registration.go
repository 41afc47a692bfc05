package capabilities

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Limits of registrations, which bound what one agent can add to the registry.
const (
	maxRegisteredExamples = 100 // of an intent
	maxRegisteredKeywords = 200
	maxRegisteredLabels   = 200 // intents, and as many domains
	maxRegisteredNotFor   = 20
)

// CheckRegistration returns the mistakes of a registration, with JSON pointers.
func CheckRegistration(agentID string, r *contract.Registration) ([]contract.ErrorDetail, error) {
	shape, err := shapeValidator()
	if err != nil {
		return nil, err
	}
	found := &pointerMistakes{}
	c := checker{mistakes: found, shape: shape}
	entry := r.Entry(agentID)
	if entry.Endpoint.Protocol != "" && !slices.Contains(registeredProtocols(), entry.Endpoint.Protocol) {
		entry.Endpoint = contract.Endpoint{} // checkRegistered reports the protocol, on which all other keys depend
	}
	c.checkEntry(agentID, entry)
	c.checkRegistered(r)
	return found.details, nil
}

// registeredProtocols are the protocols of agents that register themselves.
func registeredProtocols() []string { return []string{contract.ProtocolHTTP, contract.ProtocolPull} }

// checkRegistered checks what only registrations have, or have with other limits.
func (c checker) checkRegistered(r *contract.Registration) {
	if r.Instance != "" && !contract.ValidAgentID(r.Instance) {
		c.report(fmt.Sprintf("%q is not the name of an instance: up to 64 of a-z, 0-9, _ and -, with a letter first", truncateText(r.Instance)), "instance")
	}
	if r.LeaseTTLS != 0 && (r.LeaseTTLS < contract.MinLeaseTTLS || r.LeaseTTLS > contract.MaxLeaseTTLS) {
		c.report(fmt.Sprintf("must be between %d and %d seconds, got %d", contract.MinLeaseTTLS, contract.MaxLeaseTTLS, r.LeaseTTLS), "lease_ttl_s")
	}
	switch protocol := r.Endpoint.Protocol; {
	case r.Endpoint.IsZero(): // checkEndpoint reports any other endpoint without a protocol
		c.report("is missing: an agent that registers itself must be reachable by protocol http, or pull its tasks (protocol pull)", "endpoint")
	case protocol != "" && !slices.Contains(registeredProtocols(), protocol):
		text := fmt.Sprintf("must be %s for an agent that registers itself, got %q", strings.Join(registeredProtocols(), " or "), truncateText(protocol))
		if near := strictyaml.Nearest(protocol, registeredProtocols()); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		c.report(text, "endpoint", "protocol")
	}
	for _, intent := range slices.Sorted(maps.Keys(r.Examples)) {
		if n := len(r.Examples[intent]); n > maxRegisteredExamples {
			c.report(fmt.Sprintf("has %d examples; an agent that registers itself may declare %d of an intent", n, maxRegisteredExamples), "examples", intent)
		}
	}
	for _, list := range []struct {
		values []string
		most   int
		name   string
		at     []any
	}{
		{r.Keywords, maxRegisteredKeywords, "keywords", []any{"keywords"}},
		{r.Match.Intent, maxRegisteredLabels, "intents", []any{"match", "intent"}},
		{r.Match.Domains, maxRegisteredLabels, "domains", []any{"match", "domains"}},
		{r.NotFor, maxRegisteredNotFor, "texts", []any{"not_for"}},
	} {
		if n := len(list.values); n > list.most {
			c.report(fmt.Sprintf("has %d %s; an agent that registers itself may declare %d", n, list.name, list.most), list.at...)
		}
	}
}

// pointerMistakes is a mistakeSink for values that come as JSON.
type pointerMistakes struct{ details []contract.ErrorDetail }

// Errorf implements mistakeSink.
func (m *pointerMistakes) Errorf(at strictyaml.Path, format string, args ...any) {
	const most = 20 // a longer list does not help
	if len(m.details) < most {
		m.details = append(m.details, contract.ErrorDetail{Pointer: jsonPointer(at), Detail: fmt.Sprintf(format, args...)})
	}
}

// KeyErrorf implements mistakeSink.
func (m *pointerMistakes) KeyErrorf(at strictyaml.Path, format string, args ...any) {
	m.Errorf(at, format, args...)
}

// jsonPointer returns the path as a JSON pointer (RFC 6901).
func jsonPointer(at strictyaml.Path) string {
	pointer := ""
	for _, step := range at {
		pointer = strictjson.AppendPointer(pointer, fmt.Sprint(step))
	}
	return pointer
}

// LimitToGrant returns the part of a registered entry that the grant contains, with
// what the grant determines: priority, requires and the kinds of data. A nil grant
// contains nothing. Refused are sentences about what it does not contain.
func LimitToGrant(e *contract.RegistryEntry, g *contract.Grant) (limited *contract.RegistryEntry, refused []string) {
	if g == nil {
		g = &contract.Grant{}
	}
	granted := *e
	granted.Match = contract.Match{
		Intent:  keepGranted("intent", e.Match.Intent, g.Intents, func(name string) bool { return slices.Contains(g.Intents, name) }, &refused),
		Domains: keepGranted("domain", e.Match.Domains, g.Domains, g.GrantsDomain, &refused),
	}
	granted.Examples = map[string][]string{}
	for _, intent := range granted.Match.Intent {
		if examples := e.Examples[intent]; len(examples) > 0 {
			granted.Examples[intent] = examples
		}
	}
	granted.MCPCapabilities = nil
	granted.Priority, granted.Requires = g.Priority, g.Requires
	granted.AcceptsDataClasses = limitClasses(e.AcceptsDataClasses, g.AcceptsDataClasses)
	granted.Restore = limitClasses(nil, g.Restore)
	return &granted, refused
}

func keepGranted(kind string, declared, granted []string, isGranted func(string) bool, refused *[]string) []string {
	kept := make([]string, 0, len(declared))
	for _, name := range declared {
		if isGranted(name) {
			kept = append(kept, name)
			continue
		}
		sentence := fmt.Sprintf("%s %s is not granted", kind, name)
		normalized := normalizeName(name)
		if i := slices.IndexFunc(granted, func(other string) bool { return normalizeName(other) == normalized }); i >= 0 {
			sentence += "; the grant contains " + granted[i]
		}
		*refused = append(*refused, sentence)
	}
	return kept
}

// limitClasses returns the kinds of data that are both declared and granted. An absent
// declaration leaves the choice to the grant; an absent grant contains none.
func limitClasses(declared, granted contract.DataClasses) contract.DataClasses {
	none := contract.DataClasses{contract.NoClasses}
	switch {
	case len(granted) == 0 || slices.Contains(granted, contract.NoClasses) || slices.Contains(declared, contract.NoClasses):
		return none
	case len(declared) == 0 || slices.Contains(declared, contract.AllClasses):
		return granted
	case slices.Contains(granted, contract.AllClasses):
		return declared
	}
	both := slices.DeleteFunc(slices.Clone(declared), func(class string) bool { return !slices.Contains(granted, class) })
	if len(both) == 0 {
		return none
	}
	return both
}
