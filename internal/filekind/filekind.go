// Package filekind recognizes the files that an operator writes by their keys, so that
// the error about a file that was passed in the place of another one names the flag that
// takes it.
//
//	if err := decode(data, &config); err != nil {
//		return filekind.Explain(err, filekind.Config, path, data)
//	}
//
// It decodes nothing, and does not decide whether a file is accepted.
package filekind

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Kind is a kind of file.
type Kind int

// The kinds of files.
const (
	Unknown  Kind = iota
	Config        // caprouter.yaml
	Registry      // capabilities.yaml
	Servers       // mcp.json
	Cases         // golden cases
)

// description describes a kind.
type description struct {
	kind Kind
	name string
	use  string // how the file is passed; FILE is its name
	keys []string
}

func descriptions() []description {
	return []description{
		{Config, "a configuration", "pass it as --config FILE", []string{
			"listen", "public_url", "tls", "data_dir", "registry", "mcp", "sample_agent", "auth", "classifier", "llm", "dispatch", "limits",
			"store", "audit", "tickets", "redact", "session", "telemetry",
		}},
		{Registry, "a capability registry", "pass it as --registry FILE, or check it with caprouter validate FILE", []string{
			"clients", "agents", "domain_aliases", "routing", "fallback", "grants",
		}},
		{Servers, "a registry of MCP servers", "pass it as --mcp FILE, or check it with caprouter mcp validate FILE", []string{
			"mcpServers", "servers", "plugins",
		}},
		{Cases, "a file of golden cases", "run it with caprouter golden run FILE", []string{"cases"}},
	}
}

var (
	yamlKey    = regexp.MustCompile(`(?m)^["']?([A-Za-z_]+)["']?[ \t]*:`) // of the outermost mapping
	jsonString = regexp.MustCompile(`^"((?:[^"\\\n]|\\.)*)"?(\s*:)?`)     // with the colon that makes it a key
)

// Of returns the kind that most keys of the content belong to, or Unknown.
func Of(data []byte) Kind {
	found := outermostKeys(data)
	best, most := Unknown, 0
	for _, d := range descriptions() {
		n := 0
		for _, k := range d.keys {
			if found[k] {
				n++
			}
		}
		if n == most {
			best = Unknown
		}
		if n > most {
			best, most = d.kind, n
		}
	}
	return best
}

// outermostKeys returns the keys of the outermost mapping of a YAML file, or of the
// outermost objects of a JSON or JSONL file. The content may have syntax errors. If a
// brace is missing, the keys that follow count as keys of an inner object, because an
// agent, a server or a field may have the name of any key.
func outermostKeys(data []byte) map[string]bool {
	keys := map[string]bool{}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		for _, m := range yamlKey.FindAllSubmatch(data, -1) {
			keys[string(m[1])] = true
		}
		return keys
	}
	for depth, i := 0, 0; i < len(data); {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth = max(0, depth-1)
		case '"':
			m := jsonString.FindSubmatch(data[i:])
			if depth == 1 && m[2] != nil {
				keys[string(m[1])] = true
			}
			i += len(m[0])
			continue
		}
		i++
	}
	return keys
}

// Explain returns err, the error of decoding a file as the kind want, unless the
// content is of another kind. Then the error contains what it is, and how it is passed.
func Explain(err error, want Kind, file string, data []byte) error {
	is := Of(data)
	if err == nil || is == Unknown || is == want {
		return err
	}
	all := descriptions()
	describe := func(k Kind) description {
		return all[slices.IndexFunc(all, func(d description) bool { return d.kind == k })]
	}
	actual := describe(is)
	return strictyaml.Errors{{File: file, Detail: fmt.Sprintf(
		"is %s, not %s: %s", actual.name, describe(want).name, strings.ReplaceAll(actual.use, "FILE", file),
	)}}
}
