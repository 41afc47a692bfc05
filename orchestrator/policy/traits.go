package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// traits are what a tool does, as far as its definition and the arguments show. They are
// immutable.
type traits struct {
	remote      bool // the server is on another machine
	local       bool // the tool states that it reaches nothing else, or works on files and databases
	sends       bool // it sends data to the destinations in its arguments
	publishes   bool // everyone can read what it sends
	searches    bool // a third party reads its query
	writesFiles bool
	executes    bool
	reveals     bool // it returns credentials
	queries     bool // it executes SQL
}

// readVerbs are the first words of tools that read what an address names.
var readVerbs = []string{"get", "fetch", "read", "list", "search", "find", "navigate", "download", "clone", "open", "lookup", "resolve", "crawl", "scrape", "extract", "describe", "query"}

var writeVerbs = []string{"write", "create", "edit", "move", "delete", "remove", "append", "save", "mkdir", "rename", "copy", "replace", "patch", "put", "clone", "extract", "unzip", "touch", "insert", "modify", "update"}

var sendVerbs = []string{"send", "post", "put", "upload", "push", "publish", "share", "trigger", "notify", "forward", "submit", "deliver", "invite", "export", "sync", "mirror", "remote", "call", "reply"}

// readTraits derives the traits of the called tool.
func readTraits(c *Call, leaves []leaf) traits {
	words := splitWords(c.Tool)
	properties := propertyNames(c.InputSchema)
	for i := range leaves {
		properties[leaves[i].name] = true
	}
	has := func(list ...string) bool { // an argument of one of these names
		return slices.ContainsFunc(list, func(name string) bool { return properties[name] })
	}
	named := func(list ...string) bool { // a word of the tool's name
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	about := strings.Join(splitWords(c.Description), " ")
	readOnly := isTrue(c.Annotations.ReadOnly)
	t := traits{
		remote:  c.Transport == "http" || c.Transport == "sse" || c.Transport == "rest",
		queries: has("sql", "query", "statement") && slices.ContainsFunc(leaves, func(l leaf) bool { return l.isNamed("sql", "query", "statement") && isSQL(l.text) }),
	}
	t.writesFiles = !t.remote && named(writeVerbs...) && !has("owner", "bucket", "host", "parent")
	if readOnly && !named("write", "edit", "move", "delete", "remove", "append", "mkdir", "rename") {
		t.writesFiles = false
	}
	runs := named("run", "exec", "execute", "eval", "shell", "bash", "terminal", "python", "script", "sandbox", "repl", "ssh") ||
		strings.Contains(about, "execute a command") || strings.Contains(about, "shell command")
	t.executes = has("command", "cmd", "shell", "script", "commandline", "command_line") || has("code", "source_code", "program", "args") && runs
	secret := []string{"secret", "secrets", "password", "passwords", "credential", "credentials", "keychain", "vault"}
	t.reveals = named(secret...) && !named("generate", "rotate", "check") ||
		slices.ContainsFunc(leaves, func(l leaf) bool {
			return l.isNamed("type", "kind", "resource") && slices.Contains(secret, strings.ToLower(l.text))
		})
	t.local = isFalse(c.Annotations.OpenWorld) ||
		!t.remote && !isTrue(c.Annotations.OpenWorld) && (t.queries || has("path", "paths", "repo_path", "directory") && !has("host", "url", "email", "bucket"))
	method := "get"
	for i := range leaves {
		if leaves[i].isNamed("method", "verb") {
			method = strings.ToLower(leaves[i].text)
		}
	}
	body := slices.ContainsFunc(leaves, func(l leaf) bool {
		return l.text != "" && (l.hasKey("body", "payload", "data", "attachments", "files", "command") || l.isNamed("content"))
	})
	t.sends = !slices.Contains([]string{"get", "head", "options"}, method) || body ||
		!readOnly && named(sendVerbs...) && !slices.Contains(readVerbs, firstVerb(words))
	t.publishes = named("paste", "gist", "publish", "tweet", "social", "pastebin", "blog") ||
		slices.ContainsFunc(splitWords(c.Server), func(w string) bool {
			return slices.Contains([]string{"paste", "pastebin", "social", "twitter", "mastodon", "bluesky"}, w)
		})
	t.searches = !t.local && named("search", "translate", "lookup", "ask")
	return t
}

// firstVerb returns the first word that is a known verb: slack_post_message is "post".
func firstVerb(words []string) string {
	for _, w := range words {
		if slices.Contains(readVerbs, w) || slices.Contains(sendVerbs, w) || slices.Contains(writeVerbs, w) {
			return w
		}
	}
	return ""
}

// propertyNames returns the names of the properties of a schema as words joined by "_".
func propertyNames(schema json.RawMessage) map[string]bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	names := map[string]bool{}
	if len(schema) == 0 || strictjson.UnmarshalAllowUnknown(schema, &s) != nil {
		return names
	}
	for name := range maps.Keys(s.Properties) {
		names[strings.Join(splitWords(name), "_")] = true
	}
	return names
}

func isTrue(hint *bool) bool  { return hint != nil && *hint }
func isFalse(hint *bool) bool { return hint != nil && !*hint }
