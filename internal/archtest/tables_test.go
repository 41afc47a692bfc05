package archtest

// level is one step of the import table. A package imports packages of lower
// levels only.
type level struct {
	name string
	rows []row
}

// row is the entry of one package.
type row struct {
	pkg string
	why string
	// only lists all packages of this module that it may import, if its level would permit
	// more.
	only []string
	// users lists all packages that may import it, if their level would permit more. Tests
	// always may import it.
	users []string
	// testsOnly marks code for tests: other code does not import it, and it may use test
	// libraries.
	testsOnly bool
}

// levels is the import table, lowest level first.
func levels() []level {
	return []level{
		{"shared types", []row{
			{pkg: "contract", why: "types that all packages share; all packages would depend on its imports"},
			{pkg: "docs", why: "the documents, embedded; no code"},
			{pkg: "internal/archtest", why: "reads the source of the other packages and links none of them"},
		}},
		{"small libraries", []row{
			{pkg: "internal/run", why: "supervised goroutines"},
			{pkg: "internal/strictjson", why: "the JSON decoder; error details are contract types"},
			{pkg: "internal/strictyaml", why: "the YAML decoder"},
			{pkg: "internal/yamledit", why: "appends to lists in YAML text; independent of its meaning"},
			{pkg: "internal/resilience", why: "circuit breaker and retry"},
			{pkg: "internal/broadcast", why: "wakes goroutines that wait for a change; independent of what changes", only: []string{}},
			{pkg: "internal/loglimit", why: "limits log lines that repeat; independent of their meaning", only: []string{}},
			{pkg: "internal/egress", why: "checks the addresses of outgoing connections; used by configuration, lint, the HTTP server and every client"},
			{pkg: "internal/auth/weakkey", why: "rejects keys and secrets that can be computed or guessed; independent of how they are encoded"},
			{pkg: "internal/datadir", why: "checks and opens the data directory, and marks its format; independent of its content"},
			{pkg: "internal/filewatch", why: "reports changes of a file; independent of its content"},
			{pkg: "internal/limits", why: "rate limits of callers and the token budget of the model; independent of HTTP and of models"},
			{pkg: "internal/fairqueue", why: "divides permits between tenants; independent of the use of a permit"},
			{pkg: "internal/throttle", why: "delays the tenants that send the most in a busy process; independent of HTTP"},
			{pkg: "internal/plaintext", why: "formats text for people; independent of its meaning", only: []string{}},
			{pkg: "internal/pagination", why: "divides lists into pages; independent of their entries", only: []string{"contract"}},
			{pkg: "internal/lexical/lexicon", why: "synonyms, translations, common words and stop words; data", users: []string{"internal/lexical", "internal/lexical/chinese", "internal/lexical/feature", "internal/lexical/synonyms", "internal/lexical/token", "internal/wordvectors/generate"}},
			{pkg: "internal/quota", why: "divides parts of the store between tenants; independent of the stored data", only: []string{"contract"}},
			{
				pkg: "agentkit", why: "part of the programs of agents, so it must not import internals of the router",
				only:  []string{"contract"},
				users: []string{"internal/demo", "examples/agent", "examples/agents/go"},
			},
		}},
		{"the words of a language", []row{
			{pkg: "internal/lexical/chinese", why: "simplifies the characters of Chinese text, and finds its words; independent of intents", only: []string{"internal/lexical/lexicon"}, users: []string{"internal/email", "internal/lexical", "internal/lexical/followup", "internal/lexical/token"}},
		}},
		{"the form of keys", []row{
			{pkg: "internal/auth/jwk", why: "decodes and encodes public keys and sets of them; internal/auth/weakkey checks the strength of keys", only: []string{"internal/strictjson"}},
		}},
		{"the form of tokens", []row{
			{pkg: "internal/auth/strictjwt", why: "verifies the form and the signature of tokens; internal/auth decides which keys are trusted", only: []string{"internal/strictjson"}},
		}},
		{"between the router and a model", []row{
			{pkg: "internal/redact", why: "masks personal data and secrets; the registry refers to its kinds"},
			{pkg: "internal/responsejson", why: "encodes decisions and responses; independent of their destination", only: []string{"contract", "internal/strictjson"}},
			{pkg: "prompts", why: "prompt templates; pure, independent of providers"},
			{pkg: "internal/email", why: "finds what the sender of an e-mail wrote; independent of intents and of the use of the text", only: []string{"internal/lexical/chinese"}},
			{pkg: "internal/lexical/calibration", why: "fits the probability that a prediction is correct; independent of texts and intents", only: []string{}, users: []string{"internal/lexical"}},
			{pkg: "internal/lexical/followup", why: "finds texts that continue a request; independent of intents", only: []string{"internal/lexical/chinese"}, users: []string{"classifier"}},
			{pkg: "internal/lexical/negation", why: "finds negated verbs; independent of intents", only: []string{}, users: []string{"internal/lexical"}},
			{pkg: "internal/wordvectors", why: "vectors of English words; data", users: []string{"internal/lexical", "internal/lexical/feature", "internal/lexical/synonyms", "internal/wordvectors/generate"}},
			{pkg: "internal/llm", why: "the interface to language models; its error reasons are metric labels and decision reasons"},
		}},
		{"words of texts", []row{
			{pkg: "internal/lexical/token", why: "splits texts into folded words and stems; independent of intents", only: []string{"internal/lexical/chinese", "internal/lexical/lexicon"}, users: []string{"internal/lexical", "internal/lexical/feature", "internal/lexical/ranking", "internal/lexical/synonyms"}},
		}},
		{"meanings of words", []row{
			{pkg: "internal/lexical/synonyms", why: "finds words that mean the same; independent of intents", only: []string{"internal/lexical/lexicon", "internal/lexical/token", "internal/wordvectors"}, users: []string{"internal/lexical", "internal/lexical/feature", "internal/lexical/ranking"}},
		}},
		{"features of texts", []row{
			{
				pkg: "internal/lexical/feature", why: "hashes and numbers the features of texts; independent of intents and of models",
				only: []string{"internal/lexical/lexicon", "internal/lexical/synonyms", "internal/lexical/token", "internal/wordvectors"}, users: []string{"internal/lexical", "internal/lexical/ranking"},
			},
		}},
		{"keys in the data directory", []row{
			{pkg: "internal/auth/keyring", why: "holds, stores and rotates the signing keys; independent of the form of the tokens that they sign", only: []string{"contract", "internal/auth/jwk", "internal/auth/weakkey", "internal/datadir"}},
			{pkg: "internal/contentkey", why: "encrypts stored contents; independent of the place of storage"},
		}},
		{"the router's tokens", []row{
			{
				pkg: "internal/auth/issuance", why: "issues tokens for agents, tasks and callers with the keys of internal/auth/keyring",
				only: []string{"contract", "internal/auth/jwk", "internal/auth/keyring", "internal/auth/strictjwt", "internal/strictjson"},
			},
		}},
		{"parts of the store", []row{
			{pkg: "internal/store/dirlock", why: "locks a data directory for one process; independent of its content", only: []string{"internal/datadir"}, users: []string{"internal/store"}},
			{pkg: "internal/store/repair", why: "finds and removes damage in the files of the engine; reads their format without the engine", only: []string{"internal/datadir", "internal/strictjson"}, users: []string{"internal/store", "cmd/caprouter"}},
			{pkg: "internal/store/natsserver", why: "runs a NATS server in this process; independent of the stored data", only: []string{}, users: []string{"internal/store"}},
		}},
		{"libraries of one subject", []row{
			{pkg: "internal/lexical", why: "lexical classification; pure"},
			{pkg: "internal/lexical/ranking", why: "ranks names and descriptions without a model; pure", only: []string{"internal/lexical/feature", "internal/lexical/synonyms", "internal/lexical/token"}},
			{pkg: "internal/modelfile", why: "stores trained models in the data directory; independent of their content", only: []string{"internal/datadir"}},
			{pkg: "internal/filekind", why: "recognizes the kind of a file of the operator; independent of the decoders", only: []string{"internal/strictyaml"}},
			{pkg: "internal/modeltext", why: "asks a model for a text that a caller reads; independent of the occasion", only: []string{"contract", "internal/llm", "internal/plaintext", "prompts"}},
			{pkg: "internal/telemetry", why: "log, metrics and spans; labels are statuses and codes of contract and reasons of llm"},
			{pkg: "internal/auth", why: "verifies the tokens of callers"},
			{pkg: "gateway/schema", why: "compiles untrusted JSON Schemas within limits; independent of their source", only: []string{"contract", "internal/strictjson"}},
			{pkg: "gateway/redaction", why: "replaces values by rules of the operator; independent of tools", only: []string{"contract", "internal/redact", "internal/strictjson"}},
			{pkg: "orchestrator/policy", why: "decides whether a tool may be called; pure; independent of runs and of the protocol of tools", only: []string{"contract", "internal/redact", "internal/strictjson", "internal/strictyaml"}},
			{pkg: "gateway/subprocess", why: "starts MCP servers and ends their process groups; independent of the protocol", users: []string{"gateway/mcpclient", "cmd/caprouter"}},
			{pkg: "internal/mcpsample", why: "MCP servers for first steps and for tests", only: []string{"internal/strictjson"}},
			{pkg: "internal/store", why: "durable tables, logs and blobs; independent of their content"},
		}},
		{"definitions of tools", []row{
			{pkg: "gateway/pins", why: "stores and compares definitions of tools; independent of connections", only: []string{"internal/store", "internal/strictjson"}},
		}},
		{"files of MCP servers", []row{
			{pkg: "gateway/mcpfile", why: "reads the registry files of MCP servers in all their formats; starts and calls no server"},
		}},
		{"connections to MCP servers", []row{
			{pkg: "gateway/mcpclient", why: "one connection to one MCP server; does not retry or validate", users: []string{"gateway", "cmd/caprouter", "internal/app", "internal/cli/mcprelay"}},
		}},
		{"the MCP gateway", []row{
			{pkg: "gateway", why: "connections, validation, retry and normalization of all calls of tools"},
		}},
		{"copies of the store", []row{
			{pkg: "internal/store/storecopy", why: "reads the files of a data directory that a router may use; independent of their content", only: []string{"internal/datadir", "internal/store"}, users: []string{"internal/audit", "internal/feedback", "internal/mcphost"}},
		}},
		{"model providers", []row{
			{pkg: "internal/llm/gemini", why: "implements llm.Provider", users: []string{"internal/app"}},
			{pkg: "internal/llm/genai", why: "implements llm.Provider", users: []string{"internal/app"}},
			{pkg: "internal/llm/openai", why: "implements llm.Provider", users: []string{"internal/app"}},
		}},
		{"state of requests", []row{
			{pkg: "internal/audit", why: "the audit log, a hash chain; starts no work"},
			{pkg: "internal/requests", why: "records of asynchronous requests and their transitions"},
			{pkg: "internal/events", why: "events of requests, in memory"},
			{pkg: "internal/sharedkeys", why: "the keys that routers with one store share: signing keys, the secret of callback tokens, the keyring of contents"},
			{pkg: "internal/inflight", why: "the requests that this process executes"},
			{pkg: "internal/replicas", why: "which processes share the store, and are live"},
		}},
		{"the registry", []row{
			{pkg: "capabilities", why: "the registry file, the catalogue and the fleet"},
		}},
		{"propose and decide", []row{
			{pkg: "matcher", why: "arithmetic over the registry; independent of the source of a classification"},
			{pkg: "classifier", why: "classifies requests; independent of eligible agents"},
			{pkg: "internal/fleet", why: "registrations of agents and their leases; independent of the protocol of agents"},
			{pkg: "internal/registry", why: "merges the sources of the registry; independent of the use of a version"},
		}},
		{"visibility", []row{
			{pkg: "internal/visibility", why: "the visibility filter of all interfaces; pure; uses the texts of classifier and matcher for hidden classifications"},
		}},
		{"after a decision", []row{
			{pkg: "fallback", why: "policies A, B and C, based on the matcher's near misses"},
			{pkg: "dispatch", why: "sends tasks; owns the live state that the matcher reads"},
			{pkg: "internal/idempotency", why: "idempotency keys: reserve, replay, release"},
			{pkg: "internal/session", why: "stores the context for the next request of a session"},
			{pkg: "internal/feedback", why: "stores verdicts on requests; who may give and see them is decided above", only: []string{"contract", "internal/contentkey", "internal/quota", "internal/store", "internal/store/storecopy", "internal/strictjson"}},
		}},
		{"tickets", []row{
			{pkg: "internal/tickets", why: "groups unmet requests with lexical and describes them with fallback"},
		}},
		{"rules for calling an agent", []row{
			{pkg: "dispatch/attempt", why: "time limits, retry and classification of failures for all protocols"},
		}},
		{"target protocols", []row{
			{pkg: "dispatch/httptarget", why: "implements dispatch.Target"},
			{pkg: "dispatch/pulltarget", why: "implements dispatch.Target; leases the tasks in stored requests to agents that pull them"},
			{
				pkg: "dispatch/mcptarget", why: "implements dispatch.Target; tools are called through its Invoker",
				only: []string{"contract", "dispatch", "dispatch/attempt", "internal/strictjson"},
			},
		}},
		{"goals as tasks", []row{
			{
				pkg: "dispatch/orchestratortarget", why: "implements dispatch.Target; goals are executed through its Runner",
				only: []string{"contract", "dispatch", "dispatch/attempt", "internal/strictjson"},
			},
		}},
		{"stored requests as their callers see them", []row{
			{pkg: "internal/history", why: "writes the record of a request, and returns, cancels and erases it for callers; makes no routing decision"},
		}},
		{"the MCP gateway in the router", []row{
			{pkg: "internal/mcphost", why: "decides which callers may call which tools, records calls and reloads the file; package gateway owns the connections"},
		}},
		{"planning", []row{
			{pkg: "internal/routediff", why: "explains the differences of two decisions; pure"},
			{pkg: "router/plan", why: "decides which agents execute a request and aggregates their results; pure"},
		}},
		{"executing a plan", []row{
			{pkg: "internal/execution", why: "attempts, failover, callbacks and cancellation of tasks; makes no routing decision"},
		}},
		{"answering without an agent", []row{
			{pkg: "internal/fallbackpolicy", why: "applies policy A, B or C to a request without an eligible agent; package fallback contains the texts"},
			{pkg: "internal/decisionlog", why: "measures the stages of requests, logs and counts decisions; makes no decision"},
		}},
		{"accepting requests", []row{
			{pkg: "internal/acceptance", why: "validates and masks requests and loads their session; does not classify"},
		}},
		{"asynchronous requests", []row{
			{pkg: "internal/asyncrun", why: "runs and resumes stored requests; calls the pipeline through a function value"},
		}},
		{"the pipeline", []row{
			{pkg: "router", why: "the order of the stages of a request; the stages are packages of lower levels"},
			{pkg: "orchestrator", why: "goal, plan, execution and verification; servers, tools and models are behind its interfaces"},
		}},
		{"orchestrations in the router", []row{
			{pkg: "internal/orchestrations", why: "stores and executes runs, for their callers and after a restart; package orchestrator executes the goals"},
		}},
		{"planning orchestrations with a model", []row{
			{pkg: "orchestrator/planner", why: "plans and verifies with a language model; providers are opened through a function value", users: []string{"internal/app", "cmd/caprouter"}},
		}},
		{"checking a registry", []row{
			{pkg: "internal/lint", why: "routes the examples of a registry and reports findings; package capabilities contains the rules about declarations"},
		}},
		{"replaying decisions", []row{
			{pkg: "internal/replay", why: "routes recorded decisions with another registry; reads the log through a function value"},
		}},
		{"shared by tests", []row{
			{pkg: "internal/testkit", why: "helpers for tests of several packages", testsOnly: true},
			{pkg: "internal/testkit/fakellm", why: "fake servers of language model APIs", testsOnly: true},
			{pkg: "internal/testkit/fakenet", why: "a DNS server and a listener that counts connections", testsOnly: true},
			{pkg: "internal/testkit/fakeotlp", why: "a receiver of spans", testsOnly: true},
			{pkg: "internal/testkit/serversuite", why: "the suite of all registries of servers of the orchestrator", testsOnly: true},
			{pkg: "internal/testkit/remnants", why: "finds readable and decryptable data in the files of a data directory", testsOnly: true},
			{pkg: "internal/testkit/testjwk", why: "public keys and key sets", testsOnly: true},
			{pkg: "internal/testkit/teststore", why: "an embedded store in a temporary directory, and a server for a shared one", testsOnly: true},
		}},
		{"HTTP server", []row{
			{pkg: "internal/httpserver", why: "limits and checks all HTTP interfaces; independent of the meaning of requests"},
		}},
		{"interfaces and golden tests", []row{
			{pkg: "golden", why: "routing tests; needs the whole pipeline and no server"},
			{pkg: "internal/mcpserver", why: "serves the tools of MCP servers and the router to MCP clients"},
			{pkg: "internal/rest", why: "decodes requests, calls the router, encodes responses"},
		}},
		{"golden cases in go test", []row{
			{pkg: "golden/goldentest", why: "golden cases in a go test; imports testing, which the binary must not import", users: []string{"examples/golden"}},
		}},
		{"configuration", []row{
			{pkg: "internal/config", why: "keys and defaults of the configuration file; opens only key files"},
		}},
		{"composition", []row{
			{pkg: "internal/app", why: "composes all packages"},
		}},
		{"the demonstration and the checks before a start", []row{
			{pkg: "internal/demo", why: "an app with sample agents"},
			{pkg: "internal/doctor", why: "checks the requirements of an app", users: []string{"cmd/caprouter"}},
		}},
		{"processes of drivers", []row{
			{pkg: "test/internal/process", why: "starts and stops processes for the drivers; independent of routing", only: []string{"internal/resilience", "internal/run", "internal/strictjson"}},
		}},
		{"load of drivers", []row{
			{pkg: "test/internal/workload", why: "callers, agents and checks of the guarantees to them; uses a router only over HTTP, and reads the audit log of a stopped router", only: []string{"contract", "internal/audit", "internal/contentkey", "internal/resilience", "internal/run", "internal/strictjson", "test/internal/process"}},
		}},
		{"terminal and files of commands", []row{
			{pkg: "internal/cli/localfile", why: "reads and writes files of the user; independent of their content", only: []string{"internal/resilience"}},
			{pkg: "internal/cli/terminal", why: "lays out text for a terminal or a pipe; independent of flags and of the meaning of a text", only: []string{}},
		}},
		{"the command line", []row{
			{pkg: "internal/cli/cmdline", why: "arguments, flags with limits, help, errors and exit codes of all commands; independent of the router", only: []string{"internal/cli/localfile", "internal/cli/terminal", "internal/plaintext", "internal/strictjson", "internal/strictyaml"}},
		}},
		{"the client of the commands", []row{
			{pkg: "internal/cli/restclient", why: "calls a running router, with advice about flags in its errors; independent of the form of the output"},
		}},
		{"MCP on standard input", []row{
			{pkg: "internal/cli/mcprelay", why: "passes on the messages of one MCP client; package mcpserver decides what a client gets"},
		}},
		{"decisions as text", []row{
			{pkg: "internal/cli/explain", why: "prints decisions and answers; independent of flags and of where a decision comes from"},
		}},
		{"tickets and orchestrations as text", []row{
			{pkg: "internal/cli/runreport", why: "prints orchestrations; independent of flags and of how they are fetched", only: []string{"contract", "internal/cli/terminal", "internal/strictjson"}},
			{pkg: "internal/cli/ticketreport", why: "prints and ranks tickets; independent of flags and of how they are fetched", only: []string{"capabilities", "contract", "internal/cli/terminal"}},
		}},
		{"golden results as text", []row{
			{pkg: "internal/cli/goldenreport", why: "prints what package golden computes; independent of flags", only: []string{"golden", "internal/cli/explain", "internal/cli/terminal", "internal/plaintext"}},
		}},
		{"corrections", []row{
			{pkg: "internal/cli/teach", why: "asks for corrections and writes them; runs cases through function values"},
		}},
		{"files to start from", []row{
			{pkg: "internal/cli/starter", why: "writes the first files of a user; independent of flags"},
		}},
		{"the router of a command", []row{
			{pkg: "internal/cli/routerflags", why: "flags that select a configuration, a running router or a data directory; independent of what a command does with it"},
		}},
		{"commands", []row{
			{pkg: "cmd/caprouter", why: "flags, then app or demo"},
			{pkg: "test/crash", why: "kills processes and checks that they lose no acknowledged data", only: []string{"internal/resilience", "internal/run", "test/internal/process", "test/internal/workload"}},
			{pkg: "test/cluster", why: "ends and suspends routers that share a cluster of NATS servers; it uses a router only over HTTP", only: []string{"internal/resilience", "internal/run", "test/internal/process", "test/internal/workload"}},
			{pkg: "test/fleet", why: "routes while thousands of agents register and send heartbeats; it uses a router only over HTTP"},
			{pkg: "test/overload", why: "overloads whole processes; it uses a router only over HTTP", only: []string{"contract", "internal/resilience", "internal/run", "internal/strictjson", "test/internal/process"}},
			{pkg: "internal/wordvectors/generate", why: "writes the table of word vectors", only: []string{"internal/lexical/lexicon", "internal/wordvectors"}},
			{pkg: "test/bench", why: "measures whole processes, which it starts through app"},
			{pkg: "examples/agent", why: "an example of an agent as a separate program", only: []string{"agentkit", "contract"}},
			{pkg: "examples/agents/go", why: "an example of an agent that registers itself", only: []string{"agentkit", "contract"}},
			{pkg: "examples/golden", why: "an example of routing tests", only: []string{}},
			{pkg: "examples", why: "files to copy; its tests compare them and the documents with the code", only: []string{}},
		}},
	}
}

// importException permits an import that the levels forbid.
type importException struct {
	from, to string
	why      string
}

func importExceptions() []importException { return nil }

// libraryRule lists the packages that may import a library (a module, or the
// packages below one path), including their tests.
type libraryRule struct {
	library string
	in      []string
	why     string
	tests   bool // for tests only; an empty in permits all of them
}

func libraryRules() []libraryRule {
	return []libraryRule{
		{library: "github.com/labstack/echo/v4", in: []string{"internal/httpserver"}, why: "the core is tested without HTTP"},
		{library: "github.com/go-json-experiment/json", in: []string{"internal/strictjson", "internal/responsejson"}, why: "encoding/json accepts duplicate names and names in another case"},
		{library: "github.com/go-playground/validator/v10", in: []string{"internal/strictjson", "internal/strictyaml"}, why: "one package maps tags to JSON pointers, one to positions in a file"},
		{library: "gopkg.in/yaml.v3", in: []string{"internal/cli/starter", "internal/strictyaml", "internal/yamledit"}, why: "accepts aliases, merge keys and several documents by default; yamledit needs the positions of nodes, and a test of starter reads files like an editor"},
		{library: "github.com/golang-jwt/jwt/v5", in: []string{"internal/auth", "internal/auth/issuance", "internal/auth/keyring", "internal/auth/strictjwt"}, why: "strictjwt verifies tokens, and keyring signs with ES256; tests of the others create and verify tokens"},
		{library: "github.com/MicahParks/jwkset", in: []string{"internal/auth/jwk"}, why: "decodes the keys of key sets"},
		{library: "github.com/google/generative-ai-go", in: []string{"internal/llm/gemini"}, why: "one package per provider"},
		{library: "google.golang.org/api", in: []string{"internal/llm/gemini"}, why: "required by the SDK"},
		{library: "google.golang.org/genai", in: []string{"internal/llm/genai"}, why: "one package per provider"},
		{library: "github.com/maypok86/otter/v2", in: []string{"classifier", "internal/auth"}, why: "caches of classifications and of verified tokens"},
		{library: "github.com/fsnotify/fsnotify", in: []string{"internal/filewatch"}, why: "one implementation of debouncing and polling"},
		{library: "go.opentelemetry.io/otel", in: []string{"internal/telemetry"}, why: "one package defines the label sets and the attributes of spans"},
		{library: "github.com/prometheus/client_golang", in: []string{"internal/telemetry"}, why: "the same"},
		{library: "github.com/spf13/cobra", in: []string{"cmd/caprouter", "internal/cli/cmdline", "internal/cli/routerflags"}, why: "only commands parse flags"},
		{library: "github.com/nats-io/nats-server/v2", in: []string{"internal/store/natsserver", "internal/testkit/teststore", "test/crash"}, why: "other packages use tables and logs; tests and the crash driver run a server as the external store"},
		{library: "github.com/nats-io/nats.go", in: []string{"internal/store", "test/internal/process"}, why: "other packages use tables and logs; one test is a client of a cluster"},
		{library: "github.com/nats-io/nuid", in: []string{"internal/store"}, why: "the same"},
		{library: "github.com/minio/highwayhash", in: []string{"internal/store/repair"}, why: "the hash of the engine's records"},
		{library: "golang.org/x/sys", in: []string{"internal/store", "internal/store/dirlock"}, why: "reads the free space of a disk; locks a directory"},
		{library: "github.com/google/uuid", in: []string{"router", "internal/history"}, why: "router.NewID creates all ids; history reads their time"},
		{library: "github.com/modelcontextprotocol/go-sdk", in: []string{"cmd/caprouter", "gateway", "gateway/mcpclient", "internal/app", "internal/cli/mcprelay", "internal/doctor", "internal/mcpsample", "internal/mcpserver"}, why: "mcpclient is the client, mcpserver the server, mcpsample contains sample servers, mcprelay relays standard input; tests run servers and clients"},
		{library: "golang.org/x/time", in: []string{"internal/limits"}, why: "one implementation of the token bucket"},
		{library: "code.dny.dev/ssrf", in: []string{"internal/egress"}, why: "one check for all addresses from outside"},
		{library: "github.com/charmbracelet/lipgloss", in: []string{"internal/cli/terminal"}, why: "one package lays out text for a terminal"},
		{library: "github.com/charmbracelet/x/ansi", in: []string{"internal/cli/terminal"}, why: "the same"},
		{library: "github.com/muesli/termenv", in: []string{"internal/cli/terminal"}, why: "the same"},
		{library: "golang.org/x/term", in: []string{"internal/cli/terminal"}, why: "one package lays out text for a terminal"},
		{library: "golang.org/x/text", in: []string{"gateway/schema", "internal/lexical", "internal/lexical/followup", "internal/lexical/token"}, why: "Unicode folding of text to classify; the language of the messages of jsonschema"},
		{library: "github.com/santhosh-tekuri/jsonschema/v6", in: []string{"gateway/schema"}, why: "without limits, a schema can stop the process or read files"},
		{library: "github.com/google/pprof", in: []string{"test/bench"}, why: "reads the profiles that the driver takes"},

		{library: "github.com/google/go-cmp", tests: true, why: "differences in failure texts"},
		{library: "go.opentelemetry.io/proto/otlp", tests: true, in: []string{"internal/testkit/fakeotlp"}, why: "decodes exported spans"},
		{library: "google.golang.org/protobuf", tests: true, in: []string{"internal/testkit/fakeotlp"}, why: "the same"},
		{library: "pgregory.net/rapid", tests: true, why: "property tests"},
		{library: "go.uber.org/goleak", tests: true, why: "goroutine leaks"},
		{library: "github.com/rogpeppe/go-internal/testscript", tests: true, in: []string{"cmd/caprouter"}, why: "runs commands as a user enters them"},
		{library: "github.com/rogpeppe/go-internal/txtar", tests: true, why: "one file per case"},
		{library: "github.com/getkin/kin-openapi", tests: true, in: []string{"internal/cli/starter", "internal/rest"}, why: "validates real responses against openapi.yaml, and files against their schemas"},
	}
}

// exception exempts a file or package from a rule.
type exception struct {
	place string // a file or a package
	what  string // the exempted use, as in the message; "" if the rule has a single one
	why   string
}

// goroutineExceptions may start goroutines outside internal/run.
func goroutineExceptions() []exception {
	return []exception{
		{place: "agentkit", what: "WaitGroup.Go", why: "must not import internal/run; Shutdown waits for what it starts"},
		{place: "agentkit", what: "go", why: "the same"},
		{place: "examples/agent", what: "go", why: "an example program, which cannot import internal/run"},
		{place: "dispatch/httptarget/reply.go", what: "time.AfterFunc", why: "bounds the read of an excerpt; the function only closes a connection"},
		{place: "internal/events/stream.go", what: "context.AfterFunc", why: "ends the follower of a log that no longer exists; the function only cancels"},
		{place: "internal/store", what: "context.AfterFunc", why: "cancels calls to a stopped engine; the function only cancels"},
	}
}

// jsonExceptions may use more of encoding/json than its RawMessage.
func jsonExceptions() []exception {
	return []exception{
		{place: "gateway/mcpclient/callerror.go", why: "recognizes the errors of the library; decodes no JSON"},
		{place: "contract", why: "decodes one optional member of any type; imports the standard library only"},
		{place: "gateway/schema", why: "json.Number is how the library represents numbers"},
		{place: "test/bench", why: "the baselines are programs without caprouter"},
		{place: "internal/wordvectors/generate", why: "reads a file of 300 MB as a stream"},
		{place: "agentkit", why: "must not import internal/strictjson; it decodes JSON of the router"},
	}
}

// stateExceptions may have mutable package variables.
func stateExceptions() []exception {
	return []exception{
		{place: "internal/strictjson", what: "shapes", why: "a cache of a pure function of types, as in encoding/json"},
		{place: "internal/strictjson", what: "quickChecks", why: "the same"},
	}
}

// replacedWords are words of a former vocabulary of this project that must not
// be a whole name again, each with the standard term.
func replacedWords() map[string]string {
	return map[string]string{
		"sight": "visibility filter", "lost": "hidden", "forgotten": "hidden",
		"tracked": "asynchronous request", "book": "store", "keeping": "persistence",
		"trail": "audit log", "desk": "ticket service", "errand": "call attempt",
		"courier": "callback sender", "waiting": "pending results", "came": "received",
		"place": "permit", "slot": "permit of a semaphore", "lane": "admission class", "pot": "memory budget",
		"settle": "pin or end", "settled": "pinned classification",
		"claim": "reserve", "disclaim": "release", "lap": "stage timing",
		"went": "sent", "given": "sent", "again": "resent",
		"takenover": "resumed", "recall": "resume or load", "rejoin": "resume",
		"insist": "retry until durable", "patiently": "retry with backoff",
		"told": "mapped error", "tell": "emit event", "exchange": "request context",
		"dice": "rng", "wonder": "unexpected result",
	}
}

// nameExceptions may use a replaced word in its standard meaning.
func nameExceptions() []exception {
	return []exception{
		{place: "internal/auth/issuance", what: "Claim", why: "a claim of a JWT (RFC 7519)"},
	}
}
