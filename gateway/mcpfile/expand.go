package mcpfile

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// UnresolvedError reports variables without a value.
type UnresolvedError struct {
	Names []string // as written in the file
}

// Error returns what to set.
func (e *UnresolvedError) Error() string {
	if len(e.Names) == 1 {
		return fmt.Sprintf("environment variable %s is not set", e.Names[0])
	}
	return fmt.Sprintf("environment variables %s are not set", strings.Join(e.Names, ", "))
}

var variable = regexp.MustCompile(`\$\{([^{}]+)\}`)

// Expanded is a server whose variables are replaced by their values.
type Expanded struct {
	Server
	Credential string   // of Auth
	Secrets    []string // values that must not be shown, longest first
}

// Expand replaces ${NAME}, ${env:NAME} and ${NAME:-default} in the command, the
// environment, the directory, the URL and the headers by values that lookup returns,
// and reads the credential of Auth. The error is an *UnresolvedError.
func (s Server) Expand(lookup func(name string) (string, bool)) (*Expanded, error) {
	e := &expander{lookup: lookup}
	out := &Expanded{Server: s}
	out.Command = slices.Clone(s.Command)
	for i, argument := range out.Command {
		out.Command[i] = e.expand(argument)
	}
	out.Env, out.Headers = e.expandMap(s.Env), e.expandMap(s.Headers)
	out.Dir, out.URL = e.expand(s.Dir), e.expand(s.URL)
	if s.Auth != nil {
		if out.Credential, _ = lookup(s.Auth.Env); out.Credential == "" {
			e.addUnresolved(s.Auth.Env)
		}
		e.secrets = append(e.secrets, out.Credential)
	}
	if e.unresolved != nil {
		return nil, &UnresolvedError{Names: e.unresolved}
	}
	for _, values := range []map[string]string{out.Env, out.Headers} {
		for name, value := range values {
			if secretName.MatchString(name) || mayBeSecret(value) {
				e.secrets = append(e.secrets, value)
			}
		}
	}
	e.addArguments(out.Command)
	e.addQuery(out.URL)
	out.Secrets = slices.DeleteFunc(e.secrets, func(s string) bool { return len(s) < minSecret })
	slices.SortFunc(out.Secrets, func(a, b string) int { return len(b) - len(a) })
	return out, nil
}

// addArguments adds the values of options whose name is that of a credential, and arguments
// that look like one. The first element is the program.
func (e *expander) addArguments(command []string) {
	for i, argument := range command {
		name, value, ok := strings.Cut(argument, "=")
		switch {
		case i > 0 && !strings.HasPrefix(name, "-") && mayBeSecret(argument):
			e.secrets = append(e.secrets, argument)
		case ok && strings.HasPrefix(name, "-") && mayBeSecret(value):
			e.secrets = append(e.secrets, value)
		case !strings.HasPrefix(name, "-") || !secretName.MatchString(name):
		case ok:
			e.secrets = append(e.secrets, value)
		case i+1 < len(command):
			e.secrets = append(e.secrets, command[i+1])
		}
	}
}

// addQuery adds the values in the query of a URL.
func (e *expander) addQuery(text string) {
	u, err := url.Parse(text)
	if err != nil {
		return
	}
	for _, values := range u.Query() {
		for _, value := range values {
			e.secrets = append(e.secrets, value, url.QueryEscape(value))
		}
	}
}

// mayBeSecret reports whether a value looks like a credential, whatever its name is: it
// has letters and digits, and is no path, URL or number with a unit.
func mayBeSecret(value string) bool {
	return len(value) >= 8 && strings.ContainsAny(value, "0123456789") && strings.ContainsFunc(value, unicode.IsLetter) && !strings.ContainsAny(value, "/\\ ")
}

// minSecret is the length below which a value is not hidden, because it would occur
// in every text.
const minSecret = 6

// Hide replaces the secrets in a text.
func (e *Expanded) Hide(text string) string {
	for _, secret := range e.Secrets {
		text = strings.ReplaceAll(text, secret, "<redacted>")
	}
	return text
}

// publicVariables are no secrets, and their values are parts of many texts.
var publicVariables = []string{"HOME", "LANG", "PATH", "PWD", "TMPDIR", "USER"}

type expander struct {
	lookup     func(string) (string, bool)
	unresolved []string
	secrets    []string
}

func (e *expander) addUnresolved(name string) {
	if !slices.Contains(e.unresolved, name) {
		e.unresolved = append(e.unresolved, name)
	}
}

func (e *expander) expand(text string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		name, fallback, hasDefault := strings.Cut(match[2:len(match)-1], ":-")
		value, ok := e.lookup(strings.TrimPrefix(name, "env:"))
		switch {
		case ok:
			if !slices.Contains(publicVariables, name) {
				e.secrets = append(e.secrets, value)
			}
		case hasDefault:
			value = fallback
		default:
			e.addUnresolved(name)
		}
		return value
	})
}

func (e *expander) expandMap(values map[string]string) map[string]string {
	out := maps.Clone(values)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out[name] = e.expand(values[name])
	}
	return out
}
