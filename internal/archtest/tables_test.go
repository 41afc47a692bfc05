package archtest

// level is one step of the import table. A package imports packages of lower
// levels only.
type level struct {
	name string
	rows []row
}

// row places one package.
type row struct {
	pkg string
	why string
	// only lists all it may import of this module, where its level would
	// allow more.
	only []string
	// users lists all packages that may import it, where their level would
	// allow more; tests always may.
	users []string
	// testsOnly marks code that is written for tests: nothing else imports it,
	// and it may use the libraries of tests.
	testsOnly bool
}

// levels is the import table, lowest level first.
func levels() []level {
	return []level{
		{"what crosses a border", []row{
			{pkg: "contract", why: "the types all packages share; any import would be imported everywhere"},
			{pkg: "docs", why: "the documents, embedded; no code"},
			{pkg: "internal/archtest", why: "reads the source of the others and links none of it"},
		}},
		{"plumbing that knows nothing of routing", []row{
			{pkg: "internal/run", why: "goroutines with an owner"},
			{pkg: "internal/strictjson", why: "the one JSON decoder; details are contract types"},
			{pkg: "internal/strictyaml", why: "the one YAML decoder"},
			{pkg: "internal/resilience", why: "breaker and retry"},
			{pkg: "internal/egress", why: "which addresses are this machine, and which may be called: asked by configuration, lint, edge and whatever calls out"},
			{pkg: "internal/filewatch", why: "reports changes of a file, whatever it contains"},
			{pkg: "internal/limits", why: "how often a caller may, how much a model may cost; knows neither edge nor model"},
			{
				pkg: "agentkit", why: "copied into other people's programs, so it must not bring our insides along",
				only:  []string{"contract"},
				users: []string{"internal/demo", "examples/agent"},
			},
		}},
		{"what stands between us and a model", []row{
			{pkg: "internal/redact", why: "masks personal data and secrets; the registry refers to its kinds"},
			{pkg: "prompts", why: "what a model is asked, as text; pure, and knows no provider"},
			{pkg: "internal/llm", why: "the interface to language models; its reasons are metric labels and decision reasons"},
		}},
		{"plumbing with a subject", []row{
			{pkg: "internal/lexical", why: "lexical classification; pure"},
			{pkg: "internal/telemetry", why: "log and metrics; its labels are contract's statuses and codes, and llm's reasons"},
			{pkg: "internal/auth", why: "tokens to agents, and whose token a caller's is"},
			{pkg: "internal/store", why: "what outlives a process, as keys and logs; knows nothing of what they mean"},
		}},
		{"ways to reach a model", []row{
			{pkg: "internal/llm/gemini", why: "implements llm.Provider", users: []string{"internal/app"}},
			{pkg: "internal/llm/genai", why: "implements llm.Provider", users: []string{"internal/app"}},
			{pkg: "internal/llm/openai", why: "implements llm.Provider", users: []string{"internal/app"}},
		}},
		{"what outlives a request", []row{
			{pkg: "internal/audit", why: "what was decided and answered, chained; drives no work"},
			{pkg: "internal/requests", why: "the records of requests nobody waits for, and how they may move"},
			{pkg: "internal/events", why: "what happens to a request, while it happens"},
			{pkg: "internal/inflight", why: "the requests that this process executes; knows nothing of how"},
		}},
		{"what is registered", []row{
			{pkg: "capabilities", why: "the registry all decisions are taken on"},
		}},
		{"what a request is, and who may serve it", []row{
			{pkg: "matcher", why: "arithmetic over the registry; does not see how the classification came about"},
			{pkg: "classifier", why: "classifies; does not know which agents are eligible"},
			{pkg: "internal/registry", why: "merges the sources of the registry; knows nothing of what is built from a version"},
		}},
		{"what a caller may see of a decision", []row{
			{pkg: "internal/visibility", why: "the one visibility filter of every surface; pure, and words a hidden classification like the classifier and the matcher do"},
		}},
		{"what follows from a decision", []row{
			{pkg: "fallback", why: "answers from the matcher's near misses"},
			{pkg: "dispatch", why: "tasks to agents; owns the live state the matcher reads"},
			{pkg: "internal/idempotency", why: "which request has an idempotency key, and when its response is replayed"},
			{pkg: "internal/session", why: "stores what the next request of a session needs"},
		}},
		{"what nobody could do", []row{
			{pkg: "internal/tickets", why: "gathers unmet requests; words them with fallback, tells them apart with lexical"},
		}},
		{"rules for calling an agent", []row{
			{pkg: "dispatch/attempt", why: "time limits, retry and meaning of failures, the same for every protocol"},
		}},
		{"ways to reach an agent", []row{
			{pkg: "dispatch/httptarget", why: "implements dispatch.Target"},
		}},
		{"stored requests as their callers see them", []row{
			{pkg: "internal/history", why: "writes what remains of a request, and returns, cancels and erases it for its callers; decides nothing about routing"},
		}},
		{"planning", []row{
			{pkg: "router/plan", why: "decides which agents execute a request and aggregates their results; pure"},
		}},
		{"executing a plan", []row{
			{pkg: "internal/execution", why: "attempts, failover, callbacks and cancellation of tasks; decides nothing"},
		}},
		{"asynchronous requests", []row{
			{pkg: "internal/asyncrun", why: "runs and resumes stored requests; calls the pipeline through a function value"},
		}},
		{"the pipeline", []row{
			{pkg: "router", why: "the order of the stages of a request; everything it calls is below"},
		}},
		{"shared by tests", []row{
			{pkg: "internal/testkit", why: "helpers for tests of several packages", testsOnly: true},
			{pkg: "internal/testkit/fakellm", why: "fake servers of language model APIs", testsOnly: true},
			{pkg: "internal/testkit/fakenet", why: "a name server and a trap for outgoing connections", testsOnly: true},
			{pkg: "internal/testkit/teststore", why: "an embedded store in a temporary directory", testsOnly: true},
		}},
		{"HTTP machinery", []row{
			{pkg: "internal/httpserver", why: "guards every HTTP interface; does not know what a request means"},
		}},
		{"the door", []row{
			{pkg: "golden", why: "routing tests; needs the whole pipeline and no server"},
			{pkg: "internal/rest", why: "decodes requests, calls the router, encodes responses"},
		}},
		{"golden cases in other people's tests", []row{
			{pkg: "golden/goldentest", why: "package golden for a go test: imports testing, which a binary must not", users: []string{"examples/golden"}},
		}},
		{"composition", []row{
			{pkg: "internal/app", why: "alone knows everyone"},
		}},
		{"the demonstration", []row{
			{pkg: "internal/demo", why: "an app with sample agents"},
		}},
		{"processes of drivers", []row{
			{pkg: "test/internal/process", why: "starts and stops processes for the drivers and knows nothing of routing", only: []string{"internal/run", "internal/strictjson"}},
		}},
		{"commands", []row{
			{pkg: "cmd/caprouter", why: "flags, then app or demo"},
			{pkg: "test/crash", why: "kills whole processes and checks that nothing is lost; it uses a router only over HTTP", only: []string{"contract", "internal/run", "internal/strictjson", "test/internal/process"}},
			{pkg: "test/overload", why: "overloads whole processes; it uses a router only over HTTP", only: []string{"contract", "internal/run", "internal/strictjson", "test/internal/process"}},
			{pkg: "test/bench", why: "measures whole processes, which it starts through app"},
			{pkg: "examples/agent", why: "an agent as other people write one", only: []string{"agentkit", "contract"}},
			{pkg: "examples/golden", why: "routing tests as other people write them", only: []string{}},
			{pkg: "examples", why: "files to copy; its tests hold them and the documents to the code of every room they speak of", only: []string{}},
		}},
	}
}

// arrow is an import that the levels forbid and a reason allows.
type arrow struct {
	from, to string
	why      string
}

func arrows() []arrow { return nil }

// home says which packages may import a library (a module, or packages below
// one path). Test files of those packages may as well.
type home struct {
	library string
	in      []string
	why     string
	tests   bool // every test file may use it; `in`, where not empty, narrows that
}

func homes() []home {
	return []home{
		{library: "github.com/labstack/echo/v4", in: []string{"internal/httpserver"}, why: "the core is tested without HTTP"},
		{library: "github.com/go-json-experiment/json", in: []string{"internal/strictjson"}, why: "encoding/json takes duplicate and case-variant names"},
		{library: "github.com/go-playground/validator/v10", in: []string{"internal/strictjson"}, why: "one place turns tags into JSON pointers"},
		{library: "gopkg.in/yaml.v3", in: []string{"internal/strictyaml"}, why: "takes aliases, merge keys and second documents unless it is told not to"},
		{library: "github.com/golang-jwt/jwt/v5", in: []string{"internal/auth"}, why: "tokens are minted in one place"},
		{library: "github.com/google/generative-ai-go", in: []string{"internal/llm/gemini"}, why: "one provider, one home"},
		{library: "google.golang.org/api", in: []string{"internal/llm/gemini"}, why: "comes with it"},
		{library: "google.golang.org/genai", in: []string{"internal/llm/genai"}, why: "one provider, one home"},
		{library: "github.com/maypok86/otter/v2", in: []string{"classifier", "internal/auth"}, why: "what is cached are classifications and verified tokens"},
		{library: "github.com/fsnotify/fsnotify", in: []string{"internal/filewatch"}, why: "one implementation of debouncing and polling"},
		{library: "go.opentelemetry.io/otel", in: []string{"internal/telemetry"}, why: "label sets are closed in one place"},
		{library: "github.com/prometheus/client_golang", in: []string{"internal/telemetry"}, why: "the same"},
		{library: "github.com/spf13/cobra", in: []string{"cmd/caprouter"}, why: "commands parse flags, nobody else does"},
		{library: "github.com/nats-io/nats-server/v2", in: []string{"internal/store"}, why: "the rest of us sees buckets and logs"},
		{library: "github.com/nats-io/nats.go", in: []string{"internal/store"}, why: "the same"},
		{library: "github.com/nats-io/nuid", in: []string{"internal/store"}, why: "the same"},
		{library: "github.com/minio/highwayhash", in: []string{"internal/store"}, why: "the hash of the engine's records"},
		{library: "golang.org/x/sys", in: []string{"internal/store"}, why: "locks a directory and sees how full its disk is"},
		{library: "github.com/google/uuid", in: []string{"router", "internal/history"}, why: "router.NewID makes every id; history reads the time in it"},
		{library: "golang.org/x/time", in: []string{"internal/limits"}, why: "one meaning of too often"},
		{library: "code.dny.dev/ssrf", in: []string{"internal/egress"}, why: "one guard for every address that came from outside"},
		{library: "github.com/charmbracelet/lipgloss", in: []string{"cmd/caprouter"}, why: "only the command formats text for a terminal"},
		{library: "github.com/charmbracelet/x/ansi", in: []string{"cmd/caprouter"}, why: "the same"},
		{library: "github.com/muesli/termenv", in: []string{"cmd/caprouter"}, why: "the same"},
		{library: "golang.org/x/term", in: []string{"cmd/caprouter"}, why: "colours and width are for a terminal only"},
		{library: "golang.org/x/text", in: []string{"internal/lexical"}, why: "Unicode folding of text to classify"},

		{library: "github.com/google/go-cmp", tests: true, why: "differences in failure texts"},
		{library: "pgregory.net/rapid", tests: true, why: "property tests"},
		{library: "go.uber.org/goleak", tests: true, why: "goroutines left behind"},
		{library: "github.com/rogpeppe/go-internal/testscript", tests: true, in: []string{"cmd/caprouter"}, why: "commands as a user types them"},
		{library: "github.com/rogpeppe/go-internal/txtar", tests: true, why: "one file a case"},
		{library: "github.com/getkin/kin-openapi", tests: true, in: []string{"internal/rest"}, why: "checks real answers against openapi.yaml"},
	}
}

// exception lets one file or package off one rule.
type exception struct {
	place string // a file or a package
	what  string // what it does, as the complaint names it; "" where the rule knows one thing only
	why   string
}

// goroutineExceptions may start goroutines outside internal/run.
func goroutineExceptions() []exception {
	return []exception{
		{place: "agentkit", what: "WaitGroup.Go", why: "must not import internal/run; Shutdown waits for what it starts"},
		{place: "agentkit", what: "go", why: "the same"},
		{place: "examples/agent", what: "go", why: "a program as other people write one: internal/run is not theirs to import"},
		{place: "internal/store", what: "context.AfterFunc", why: "ends calls to an engine that is stopped; runs a cancel and nothing else"},
	}
}

// jsonExceptions may use more of encoding/json than its RawMessage.
func jsonExceptions() []exception {
	return []exception{
		{place: "contract", why: "reads one string member that is optional and may be anything; imports the standard library only"},
		{place: "test/bench", why: "the floors are what one writes without us"},
		{place: "agentkit", why: "must not import internal/strictjson; what it decodes is the router's own JSON"},
	}
}

// stateExceptions may have package variables that change.
func stateExceptions() []exception {
	return []exception{
		{place: "internal/strictjson", what: "shapes", why: "remembers a pure function of a type; as encoding/json does, or every decoder would be passed around"},
	}
}

// replacedWords are the words of this project's former private vocabulary that
// must not come back as a whole name, each with the standard term.
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
		{place: "internal/auth", what: "Claim", why: "a claim of a JWT (RFC 7519)"},
	}
}
