package mcpfile

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/gateway/schema"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// readServer reads all keys of a server.
func (o *object) readServer(form format, id string) Server {
	s := Server{
		ID:           id,
		Env:          get[map[string]string](o, "env", "environment"),
		Dir:          get[string](o, "cwd"),
		URL:          get[string](o, urlKeys()...),
		Headers:      get[map[string]string](o, "headers"),
		Capabilities: get[[]string](o, "capabilities"),
	}
	var column int
	s.Line, column = strictjson.Position(o.data, o.at)
	o.columns = append(o.columns, column)
	if detail := checkID(id); detail != "" {
		o.errorf(o.at, "the id %q %s", id, detail)
	}
	o.checkHeaders(s.Headers)
	s.Command = o.readCommand()
	s.Transport = o.readTransport(form, &s)
	s.Auth = o.readAuth()
	s.Disabled = o.readDisabled()
	s.Start = o.readStart()
	s.Priority = get[int](o, "priority")
	s.Timeouts = o.readTimeouts()
	s.Retry = o.readRetry()
	s.RateLimit = o.readRateLimit()
	o.readResilience(form, &s)
	s.Redaction = o.readRedaction()
	s.Actions = o.readActions(form, id)
	if s.Transport == REST && len(s.Actions) == 0 {
		o.errorf(o.at, "server %q needs actions, because its transport cannot list them", id)
	}
	if tools := o.getObject("tools"); tools != nil {
		s.Tools = ToolFilter{Include: get[[]string](tools, "include"), Exclude: get[[]string](tools, "exclude")}
		if _, raw := tools.find("prefix"); raw != nil {
			prefix := get[string](tools, "prefix")
			if !validPrefix.MatchString(prefix) {
				tools.errorf(tools.at+"/prefix", "prefix must have at most %d letters, digits, underscores and hyphens", maxPrefix)
			}
			s.Tools.Prefix = &prefix
		}
		tools.checkUnknown(form.foreign)
	}
	s.Prompts, s.Resources = get[*bool](o, "prompts"), get[*bool](o, "resources")
	o.checkTarget(form, &s)
	o.checkUnknown(form.foreign)
	o.warnCredentials(&s)
	return s
}

const maxID = 128

// maxPrefix bounds a prefix of names of tools, which have 64 characters.
const maxPrefix = 32

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]{0,32}$`)

func checkID(id string) string {
	switch {
	case id == "" || len(id) > maxID:
		return "must have 1 to " + strconv.Itoa(maxID) + " bytes"
	case strings.TrimSpace(id) != id || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "must not contain control characters, or blanks at its ends"
	}
	return ""
}

// readCommand returns the program and its arguments, which are one list or two keys.
func (o *object) readCommand() []string {
	_, raw := o.find("command")
	args := get[[]string](o, "args")
	if raw == nil {
		isMisspelt := func(name string) bool { return strictyaml.Nearest(name, []string{"command"}) != "" }
		if len(args) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(o.members)), isMisspelt) {
			o.errorf(o.at+"/args", "args without command")
		}
		return nil
	}
	if strings.HasPrefix(string(raw), "[") {
		list := get[[]string](o, "command")
		if len(list) == 0 || list[0] == "" {
			o.errorf(o.at+"/command", "command must name a program")
			return nil
		}
		return append(list, args...)
	}
	program := get[string](o, "command")
	switch {
	case program == "":
		o.errorf(o.at+"/command", "command must name a program")
		return nil
	case strings.Contains(program, " ") && o.members["args"] == nil:
		o.warnf(o.at+"/command", "command is one program without a shell: move its arguments to args")
	}
	return append([]string{program}, args...)
}

// readTransport returns the transport that is declared or, without one, the one that
// command or url imply.
func (o *object) readTransport(form format, s *Server) string {
	name, _ := o.find("transport", "type")
	declared := get[string](o, "transport", "type")
	var transport string
	switch strings.ToLower(declared) {
	case "":
		switch {
		case o.members["command"] != nil:
			transport = Stdio
		case form.name == "plugins":
			transport = REST
		default:
			transport = Auto
		}
	case "stdio", "local":
		transport = Stdio
	case "http":
		transport = form.http
	case "streamable-http", "streamable_http", "streamablehttp":
		transport = HTTP
	case "sse":
		transport = SSE
	case "remote", "auto":
		transport = Auto
	case "rest":
		transport = REST
	default:
		o.errorf(o.at+"/"+name, "%s %q is not supported; known are stdio, http, streamable-http, sse, rest, local, remote", name, declared)
		return ""
	}
	switch {
	case s.Command != nil && s.URL != "":
		o.errorf(o.at, "server %q has both a command and a url: remove one of them", s.ID)
	case transport != Stdio && s.URL != "":
		if detail := checkURL(s.URL); detail != "" {
			name, _ := o.find(urlKeys()...)
			o.errorf(o.at+"/"+name, "%s %s", name, detail)
		}
	}
	return transport
}

// checkTarget checks that the server has a command or a url, after all keys were read. A
// misspelt key is reported instead of a missing one.
func (o *object) checkTarget(form format, s *Server) {
	needsCommand := s.Transport == Stdio && o.members["command"] == nil
	needsURL := s.Transport != Stdio && s.Transport != "" && s.URL == ""
	if needsCommand || needsURL {
		for _, name := range slices.Sorted(maps.Keys(o.members)) {
			near := strictyaml.Nearest(name, o.known)
			if slices.Contains(o.known, name) || near != "command" && !slices.Contains(urlKeys(), near) {
				continue
			}
			if form.foreign { // else checkUnknown reports it
				o.errorf(strictjson.AppendPointer(o.at, name), "unknown key %q; did you mean %q?", name, near)
			}
			return
		}
	}
	switch {
	case needsCommand:
		o.errorf(o.at, "server %q needs a command", s.ID)
	case needsURL && s.Transport == Auto && o.members["transport"] == nil && o.members["type"] == nil:
		o.errorf(o.at, "server %q needs a command or a url", s.ID)
	case needsURL:
		o.errorf(o.at, "server %q needs a url", s.ID)
	}
}

// urlKeys are the keys that name the URL of a server.
func urlKeys() []string { return []string{"url", "endpoint", "serverUrl", "httpUrl"} }

// checkURL checks a URL without variables.
func checkURL(text string) string {
	if strings.Contains(text, "${") {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "must be an absolute http or https URL"
	}
	return ""
}

func (o *object) readAuth() *Auth {
	auth := o.getObject("auth")
	if auth == nil {
		return nil
	}
	a := &Auth{Type: get[string](auth, "type"), Env: get[string](auth, "env"), Header: get[string](auth, "header")}
	switch {
	case a.Type != "bearer" && a.Type != "header":
		auth.errorf(auth.at+"/type", "type %q is not supported; known are bearer and header", a.Type)
	case a.Env == "":
		auth.errorf(auth.at, "auth needs env, the name of the environment variable with the credential")
	case (a.Type == "header") != (a.Header != ""):
		auth.errorf(auth.at, "header is the name of the header for type header")
	case a.Header != "":
		if detail := CheckHeader(a.Header, ""); detail != "" {
			auth.errorf(auth.at+"/header", "%s", detail)
		}
	}
	auth.checkUnknown(false)
	return a
}

// readDisabled returns the meaning of enabled or disabled.
func (o *object) readDisabled() bool {
	enabled, disabled := get[*bool](o, "enabled"), get[*bool](o, "disabled")
	if enabled != nil && disabled != nil {
		o.errorf(o.at+"/disabled", "enabled and disabled mean the same: remove one of them")
	}
	return enabled != nil && !*enabled || disabled != nil && *disabled
}

// readStart returns "" for eager.
func (o *object) readStart() string {
	start := get[string](o, "start")
	switch start {
	case "", "eager":
		return ""
	case Lazy:
		return Lazy
	}
	o.errorf(o.at+"/start", "start %q is not supported; known are eager and lazy", start)
	return ""
}

func (o *object) readActions(form format, id string) []Action {
	var actions []Action
	for i, raw := range get[[]json.RawMessage](o, "actions") {
		action := o.readObject(o.at+"/actions/"+strconv.Itoa(i), raw)
		if action == nil {
			continue
		}
		a := Action{
			Name: actionName(id, get[string](action, "name")), Description: get[string](action, "description"),
			InputSchema: action.readSchema("input_schema"), OutputSchema: action.readSchema("output_schema"),
			TimeoutMS: action.getMS("timeout_ms"), Retry: action.readRetry(), RateLimit: action.readRateLimit(),
		}
		switch {
		case a.Name == "":
			action.errorf(action.at, "the action has no name")
		case slices.ContainsFunc(actions, func(other Action) bool { return other.Name == a.Name }):
			action.errorf(action.at, "action %q is declared twice", a.Name)
		}
		action.checkUnknown(form.foreign)
		actions = append(actions, a)
	}
	return actions
}

// readSchema returns a JSON Schema that compiles.
func (o *object) readSchema(name string) json.RawMessage {
	_, raw := o.find(name)
	if raw == nil {
		return nil
	}
	if _, err := schema.Compile(raw); err != nil {
		o.errorf(o.at+"/"+name, "%s %v", name, err)
		return nil
	}
	compact, err := strictjson.Marshal(raw)
	if err != nil {
		o.errorf(o.at+"/"+name, "%s: %v", name, err)
	}
	return compact
}

// secretName matches names of variables and headers that contain credentials.
var secretName = regexp.MustCompile(`(?i)key|token|secret|passw|pwd|credential|authorization|cookie`)

// warnCredentials warns of credentials in the file, and of one sent in clear text.
func (o *object) warnCredentials(s *Server) {
	warn := func(values map[string]string, names ...string) {
		member, _ := o.find(names...)
		for name, value := range values {
			if secretName.MatchString(name) && value != "" && !strings.Contains(value, "${") {
				o.warnf(strictjson.AppendPointer(o.at+"/"+member, name), "%s contains a literal credential: write ${%s} and set the environment variable", name, variableName(name))
			}
		}
	}
	warn(s.Env, "env", "environment")
	warn(s.Headers, "headers")
	if u, err := url.Parse(s.URL); err == nil {
		if u.Scheme == "http" && !egress.IsLoopback(u.Hostname()) && s.Auth != nil {
			o.warnf(o.at+"/auth", "the credential of server %q is sent in clear text: use https", s.ID)
		}
		if _, ok := u.User.Password(); ok && !strings.Contains(s.URL, "${") {
			o.warnf(o.at, "the URL of server %q contains a literal credential", s.ID)
		}
	}
}

func variableName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
