package router_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/router"
)

// faultCase has the replies of a model to a prompt and the expected response.
type faultCase struct {
	name        string
	prompt      string   // "" = defaultPrompt, which the lexical classifier recognizes
	replies     []string // one for each call; the last one is repeated
	noAutoSplit bool     // auto_split_if_conflict: false

	status  contract.Status
	source  contract.Source
	reason  string   // why the lexical classifier replaced the model
	because string   // why no agent gets the request, or the question to the caller
	chosen  []string // ids
	omitted []string // "title: reason"
}

const (
	defaultPrompt = "Please review this python code"

	quality, billing, rag = "quality_agent", "billing_agent", "rag_agent"
)

// validReply is a valid reply, from which the invalid ones are made.
const validReply = `{"intent":"code_review","domains":["python"],"subtasks":[],"confidence":0.93}`

// reply returns validReply with the dispatched replacements.
func reply(changes ...string) string { return strings.NewReplacer(changes...).Replace(validReply) }

// partsReply returns a reply with the dispatched confidence and subtasks.
func partsReply(confidence, subtasks string) string {
	return reply(`"subtasks":[]`, `"subtasks":[`+subtasks+`]`, "0.93", confidence)
}

const (
	reviewPart   = `{"title":"Review","intent":"code_review","domains":["python"]}`
	notebookPart = `{"title":"Notebook","intent":"databricks_review","domains":["databricks"]}`
	costPart     = `{"title":"Cost","intent":"cost_analysis","domains":["azure"]}`
	docsPart     = `{"title":"Docs","intent":"doc_answering","domains":["docs"]}`
	strangePart  = `{"title":"Poem","intent":"unknown","domains":["unknown"]}`
	nowherePart  = `{"title":"Cost","intent":"cost_analysis","domains":["unknown"]}`
	parentsPart  = `{"title":"Same"}`
)

// TestRouter_AnswersDespiteFaults covers replies with low confidence, without JSON, without
// domains, or with several intents.
func TestRouter_AnswersDespiteFaults(t *testing.T) {
	for _, tt := range slices.Concat(lowConfidence(), malformed(), withoutDomains(), divergent()) {
		t.Run(tt.name, func(t *testing.T) { tt.run(t) })
	}
}

// If the confidence of the model is too low, no agent gets the request, even if one declares its
// intent and domains. The lexical classifier is not used, because the model replied.
func lowConfidence() []faultCase {
	unsure := faultCase{status: contract.StatusUnsupported, source: contract.SourceLLM, because: fallback.ReasonLowConfidence}
	return []faultCase{
		unsure.with("low confidence", reply("0.93", "0.4")),
		unsure.with("low confidence: none at all", reply("0.93", "0")),
		unsure.with("low confidence: a hundredth short", reply("0.93", "0.64")),
		unsure.with("low confidence: in every part", partsReply("0.3", reviewPart+","+costPart)),
		served(quality).with("low confidence: just enough", reply("0.93", "0.65")),
	}
}

// After an invalid reply the model is called once more. Then the lexical classifier is used, and
// the response contains the reason.
func malformed() []faultCase {
	byWords := served(quality)
	byWords.source, byWords.reason = contract.SourceLexical, llm.ReasonInvalidJSON
	badValue := byWords
	badValue.reason = llm.ReasonInvalidValue
	strange := faultCase{
		prompt: "Tell me a joke", status: contract.StatusUnsupported, source: contract.SourceLexical,
		reason: llm.ReasonInvalidJSON, because: fallback.ReasonNoMatch,
	}
	return []faultCase{
		byWords.with("malformed: prose", "This is a code review."),
		byWords.with("malformed: cut off", validReply[:len(validReply)-5]),
		byWords.with("malformed: prose around it", "Sure! "+validReply),
		byWords.with("malformed: a name twice", reply("{", `{"intent":"code_review",`)),
		byWords.with("malformed: a name too many", reply("{", `{"agent":"billing_agent",`)),
		byWords.with("malformed: no confidence", reply(`,"confidence":0.93`, "")),
		byWords.with("malformed: single quotes", strings.ReplaceAll(validReply, `"`, `'`)),
		badValue.with("malformed: an intent of its own", reply("code_review", "write_poem")),
		badValue.with("malformed: an agent for an intent", reply("code_review", billing)),
		badValue.with("malformed: surer than sure", reply("0.93", "93")),
		served(quality).with("malformed: put right when asked again", "I think it is a review.", validReply),
		served(quality).with("malformed: only a fence around it", "```json\n"+validReply+"\n```"),
		strange.with("malformed: and the words say nothing", "ha ha"),
	}
}

// Missing domains are an error. The domain unknown is valid: exactly one agent declares the intent,
// so its first domain is implied.
func withoutDomains() []faultCase {
	byWords := served(quality)
	byWords.source, byWords.reason = contract.SourceLexical, llm.ReasonInvalidJSON
	empty := byWords
	empty.reason = llm.ReasonInvalidValue
	wordless := served(quality)
	wordless.prompt, wordless.source, wordless.reason = "Do a code review", contract.SourceLexical, llm.ReasonInvalidJSON
	return []faultCase{
		byWords.with("no domains: left out", reply(`"domains":["python"],`, "")),
		byWords.with("no domains: null", reply(`["python"]`, "null")),
		empty.with("no domains: an empty list", reply(`["python"]`, "[]")),
		served(quality).with("no domains: unknown", reply("python", contract.Unknown)),
		served(quality).with("no domains: one that another agent has", reply("python", "azure")),
		wordless.with("no domains: nor do the words name any", reply(`"domains":["python"],`, "")),
		served(quality).with("no domains: a part has its parent's", partsReply("0.93", parentsPart)),
		served(quality, billing).with("no domains: of one part", partsReply("0.93", reviewPart+","+nowherePart)),
	}
}

// Several intents are split if the registry permits it; otherwise the caller gets a question.
func divergent() []faultCase {
	two := served(quality, billing)
	asked := faultCase{noAutoSplit: true, status: contract.StatusClarify, source: contract.SourceLLM, because: fallback.ReasonDivergent}
	oneAgent := served(quality)
	oneAgent.noAutoSplit = true
	three := two
	three.omitted = []string{"Docs: topk_reached"}
	strange := served(quality)
	strange.omitted = []string{"Poem: " + contract.OmittedNotUnderstood}
	return []faultCase{
		two.with("divergent: split", partsReply("0.93", reviewPart+","+costPart)),
		served(billing, rag).with("divergent: none of them the main intent", partsReply("0.93", costPart+","+docsPart)),
		served(quality).with("divergent: intents of one agent", partsReply("0.93", reviewPart+","+notebookPart)),
		three.with("divergent: more agents than topk", partsReply("0.93", reviewPart+","+costPart+","+docsPart)),
		strange.with("divergent: one part without an agent", partsReply("0.93", reviewPart+","+strangePart)),
		asked.with("divergent: not to be split", partsReply("0.93", reviewPart+","+costPart)),
		oneAgent.with("divergent: one intent twice is none", partsReply("0.93", reviewPart+","+reviewPart)),
	}
}

// served returns the case of a request that the model classifies and the dispatched agents execute.
func served(ids ...string) faultCase {
	return faultCase{status: contract.StatusAccepted, source: contract.SourceLLM, chosen: ids}
}

func (c faultCase) with(name string, replies ...string) faultCase {
	c.name, c.replies = name, replies
	return c
}

func (c *faultCase) run(t *testing.T) {
	said, err := classifier.New(classifier.Config{Model: &faultyModel{replies: c.replies}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(said.Close)
	agents := &scriptedAgents{t: t}
	r, err := router.New(router.Config{}, said, agents)
	if err != nil {
		t.Fatal(err)
	}
	r.SetView(router.NewView(sourceSnapshot(t, c.noAutoSplit), agents))
	prompt := c.prompt
	if prompt == "" {
		prompt = defaultPrompt
	}
	req := &contract.Request{Content: contract.Content{Prompt: prompt}, Options: contract.Options{DryRun: true}}
	resp, err := r.Handle(t.Context(), req, &contract.Caller{AllScopes: true, AllAgents: true})
	if err != nil {
		t.Fatal(err)
	}
	want := *c
	want.chosen, want.omitted = append([]string{}, c.chosen...), append([]string{}, c.omitted...)
	if diff := cmp.Diff(want, c.got(resp), cmp.AllowUnexported(faultCase{})); diff != "" {
		t.Errorf("outcome (-want +got):\n%s\ncalls %+v", diff, resp.Decision.Classification.Calls)
	}
}

// got returns the case with the actual values of the response.
func (c *faultCase) got(resp *contract.Response) faultCase {
	got := *c
	clf := &resp.Decision.Classification
	got.status, got.source, got.reason = resp.Status, clf.Source, clf.Reason
	got.because = resp.Data.Because
	if resp.Data.Unsupported != nil {
		got.because = resp.Data.Reason
	}
	got.chosen = append([]string{}, resp.Decision.Chosen...)
	got.omitted = []string{}
	for _, o := range resp.Omitted {
		if resp.Status == contract.StatusAccepted { // otherwise because contains the reason
			got.omitted = append(got.omitted, o.Title+": "+o.Reason)
		}
	}
	return got
}

// sourceSnapshot returns the registry of the source document.
func sourceSnapshot(t *testing.T, noAutoSplit bool) *capabilities.Snapshot {
	t.Helper()
	const file = "../capabilities/testdata/source.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := capabilities.Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	s.Catalogue.Routing.AutoSplitIfConflict = !noAutoSplit
	return s
}

// faultyModel returns its replies in turn.
type faultyModel struct {
	replies []string
	calls   atomic.Int64
}

func (*faultyModel) Provider() string { return "scripted" }
func (*faultyModel) Model() string    { return "scripted-1" }

func (m *faultyModel) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	nth := int(m.calls.Add(1)) - 1
	return &llm.Reply{Text: m.replies[min(nth, len(m.replies)-1)]}, nil
}
