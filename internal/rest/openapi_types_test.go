package rest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/replay"
)

// schemaTypes returns the Go type of each schema of the document.
func schemaTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"Request":            reflect.TypeFor[contract.Request](),
		"Response":           reflect.TypeFor[contract.Response](),
		"Task":               reflect.TypeFor[contract.Task](),
		"Result":             reflect.TypeFor[contract.Result](),
		"Problem":            reflect.TypeFor[Problem](),
		"UnsupportedProblem": reflect.TypeFor[UnsupportedProblem](),
		"ExpiredProblem":     reflect.TypeFor[ExpiredProblem](),
		"ExpiredData":        reflect.TypeFor[ExpiredData](),
		"AgentList":          reflect.TypeFor[AgentList](),
		"Registry":           reflect.TypeFor[Registry](),
		"RegistryCheck":      reflect.TypeFor[RegistryCheck](),
		"RegistryLint":       reflect.TypeFor[RegistryLint](),
		"RegistryDiff":       reflect.TypeFor[replay.Report](),
		"Learning":           reflect.TypeFor[Learning](),
		"Finding":            reflect.TypeFor[capabilities.Finding](),
		"Readiness":          reflect.TypeFor[Readiness](),
		"Classification":     reflect.TypeFor[contract.Classification](),
		"Health":             reflect.TypeFor[Health](),
		"Event":              reflect.TypeFor[contract.Event](),
		"Progress":           reflect.TypeFor[contract.Progress](),
		"ResultReceipt":      reflect.TypeFor[ResultReceipt](),
		"DecisionPage":       reflect.TypeFor[contract.DecisionPage](),
		"AuditPage":          reflect.TypeFor[contract.AuditPage](),
		"FeedbackRequest":    reflect.TypeFor[contract.FeedbackRequest](),
		"Feedback":           reflect.TypeFor[contract.Feedback](),
		"Ticket":             reflect.TypeFor[contract.Ticket](),
		"TicketPage":         reflect.TypeFor[contract.TicketPage](),
		"TicketClose":        reflect.TypeFor[TicketClose](),
		"Registration":       reflect.TypeFor[contract.Registration](),
		"Lease":              reflect.TypeFor[contract.Lease](),
		"LeaseRequest":       reflect.TypeFor[contract.LeaseRequest](),
		"LeasedTask":         reflect.TypeFor[contract.LeasedTask](),
		"TaskLease":          reflect.TypeFor[contract.TaskLease](),
		"InstanceName":       reflect.TypeFor[InstanceName](),
		"ToolProblem":        reflect.TypeFor[ToolProblem](),
		"Action":             reflect.TypeFor[contract.Action](),
		"ActionResult":       reflect.TypeFor[contract.ActionResult](),
		"ActionProgress":     reflect.TypeFor[contract.ActionProgress](),
		"ActionError":        reflect.TypeFor[contract.ActionError](),
		"MCPRegistry":        reflect.TypeFor[MCPRegistry](),
		"MCPServerList":      reflect.TypeFor[MCPServerList](),
		"MCPRegistration":    reflect.TypeFor[mcphost.Registration](),
		"MCPCheck":           reflect.TypeFor[MCPCheck](),
		"MCPBindRequest":     reflect.TypeFor[MCPBindRequest](),
		"MCPBinding":         reflect.TypeFor[MCPBinding](),
		"MCPPendingList":     reflect.TypeFor[MCPPendingList](),
		"MCPApproval":        reflect.TypeFor[MCPApproval](),
		"GatewayEvent":       reflect.TypeFor[contract.GatewayEvent](),
		"Goal":               reflect.TypeFor[contract.Goal](),
		"Plan":               reflect.TypeFor[contract.Plan](),
		"Orchestration":      reflect.TypeFor[contract.Orchestration](),
		"RunPage":            reflect.TypeFor[contract.RunPage](),
		"Approval":           reflect.TypeFor[contract.Approval](),
		"MCPTest":            reflect.TypeFor[MCPTest](),
		"MCPTestResult":      reflect.TypeFor[MCPTestResult](),
	}
}

// isInbound reports whether clients send the schema. Its required members are those with a validate
// tag; in other schemas a member is required unless it has omitempty.
func isInbound(schema string) bool {
	return slices.Contains([]string{"Request", "Result", "Progress", "TicketClose", "FeedbackRequest", "LeaseRequest", "Action", "MCPRegistration", "MCPTest", "MCPBindRequest", "MCPApproval", "Goal", "Approval"}, schema)
}

// The schemas of the document have exactly the JSON members of the Go types, with the same types.
func TestOpenAPI_SchemasMatchTypes(t *testing.T) {
	doc := spec(t)
	for name, typ := range schemaTypes() {
		t.Run(name, func(t *testing.T) {
			ref := doc.Components.Schemas[name]
			if ref == nil {
				t.Fatalf("got no schema %s in the document", name)
			}
			m := mirror{t: t, inbound: isInbound(name)}
			m.compare("#", typ, ref.Value)
		})
	}
}

type mirror struct {
	t       *testing.T
	inbound bool
}

func (m mirror) compare(at string, typ reflect.Type, schema *openapi3.Schema) {
	m.t.Helper()
	schema, nullable := unwrap(schema)
	if typ.Kind() == reflect.Pointer {
		if !nullable {
			m.t.Errorf("%s: got a pointer in Go, and a schema without null", at)
		}
		typ = typ.Elem()
	} else if nullable {
		m.t.Errorf("%s: got null in the schema, and %s in Go", at, typ)
	}
	if want := jsonType(typ); want != "" && !schema.Type.Includes(want) {
		m.t.Errorf("%s: got %s in Go, and %v in the schema", at, typ, schema.Type)
	}
	switch {
	case typ == reflect.TypeFor[time.Time](), typ == reflect.TypeFor[json.RawMessage]():
	case typ.Kind() == reflect.Struct:
		m.object(at, typ, schema)
	case typ.Kind() == reflect.Slice:
		m.compare(at+"[]", typ.Elem(), schema.Items.Value)
	case typ.Kind() == reflect.Map:
		m.dictionary(at, typ, schema)
	}
}

func (m mirror) object(at string, typ reflect.Type, schema *openapi3.Schema) {
	m.t.Helper()
	fields := jsonFields(typ)
	names := make([]string, 0, len(fields))
	var required []string
	for name, f := range fields {
		names = append(names, name)
		if m.required(f) {
			required = append(required, name)
		}
	}
	var described []string
	for name := range schema.Properties {
		described = append(described, name)
	}
	if diff := cmp.Diff(sorted(names), sorted(described)); diff != "" {
		m.t.Errorf("%s: members differ (-Go +schema):\n%s", at, diff)
	}
	if diff := cmp.Diff(sorted(required), sorted(schema.Required)); diff != "" {
		m.t.Errorf("%s: required members differ (-Go +schema):\n%s", at, diff)
	}
	if closed := schema.AdditionalProperties.Has != nil && !*schema.AdditionalProperties.Has; closed != m.inbound {
		m.t.Errorf("%s: got additionalProperties: false %t, want %t, because only schemas that clients send are closed", at, closed, m.inbound)
	}
	for name, f := range fields {
		if p := schema.Properties[name]; p != nil {
			// A nil pointer with omitempty is absent, not null.
			typ := f.Type
			if _, nullable := unwrap(p.Value); !nullable && typ.Kind() == reflect.Pointer && omitted(f) && !m.inbound {
				typ = typ.Elem()
			}
			m.compare(at+"/"+name, typ, p.Value)
		}
	}
}

func (m mirror) dictionary(at string, typ reflect.Type, schema *openapi3.Schema) {
	m.t.Helper()
	free := schema.AdditionalProperties.Has != nil && *schema.AdditionalProperties.Has
	switch {
	case typ.Elem() == reflect.TypeFor[json.RawMessage]():
		if !free {
			m.t.Errorf("%s: got any members in Go, and no additionalProperties: true in the schema", at)
		}
	case schema.AdditionalProperties.Schema == nil:
		m.t.Errorf("%s: got no description of the members in the schema", at)
	default:
		m.compare(at+"/*", typ.Elem(), schema.AdditionalProperties.Schema.Value)
	}
}

// required reports whether the member is required.
func (m mirror) required(f reflect.StructField) bool {
	if !m.inbound {
		return !omitted(f)
	}
	rule := f.Tag.Get("validate")
	if strings.Contains(rule, "required") || strings.HasPrefix(rule, "oneof") {
		return true
	}
	// A struct is required if one of its members is.
	if f.Type.Kind() == reflect.Struct {
		for _, inner := range jsonFields(f.Type) {
			if m.required(inner) {
				return true
			}
		}
	}
	return false
}

func omitted(f reflect.StructField) bool {
	tag := f.Tag.Get("json")
	return strings.Contains(tag, ",omitempty") || strings.Contains(tag, ",omitzero")
}

// jsonFields returns the members of a struct, including those of embedded structs.
func jsonFields(typ reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			embedded := f.Type
			optional := embedded.Kind() == reflect.Pointer
			if optional {
				embedded = embedded.Elem()
			}
			for name, inner := range jsonFields(embedded) {
				if optional { // absent if the pointer is nil
					inner.Tag = reflect.StructTag(`json:"` + name + `,omitempty"`)
				}
				fields[name] = inner
			}
		case f.IsExported():
			fields[name] = f
		}
	}
	return fields
}

// unwrap returns the schema without null, and whether null is permitted.
func unwrap(s *openapi3.Schema) (inner *openapi3.Schema, nullable bool) {
	if len(s.AnyOf) == 2 && s.AnyOf[1].Value.Type.Is("null") {
		return s.AnyOf[0].Value, true
	}
	return s, s.Type.Includes("null")
}

func jsonType(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[json.RawMessage]():
		return ""
	case typ == reflect.TypeFor[time.Time]():
		return "string"
	}
	switch typ.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "array"
	}
	return "object"
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// The enumerations of the document equal the constants of package contract.
func TestOpenAPI_EnumsMatchConstants(t *testing.T) {
	constants := contractConstants(t)
	doc := spec(t)
	for _, name := range []string{"Status", "DataMode", "Role", "TaskStatus", "TaskCode", "Source", "CallPurpose", "Code", "EventType", "TicketStatus", "AuditKind"} {
		t.Run(name, func(t *testing.T) {
			var described []string
			for _, v := range doc.Components.Schemas[name].Value.Enum {
				described = append(described, v.(string))
			}
			if diff := cmp.Diff(sorted(constants[name]), sorted(described)); diff != "" {
				t.Errorf("values differ (-contract +document):\n%s", diff)
			}
		})
	}
	t.Run("problem table", func(t *testing.T) {
		var known []string
		for code := range problemTypes {
			known = append(known, string(code))
		}
		if diff := cmp.Diff(sorted(constants["Code"]), sorted(known)); diff != "" {
			t.Errorf("codes differ (-contract +table):\n%s", diff)
		}
	})
}

// Each reason that a model can cause is explained in openapi.yaml and in the documentation.
func TestOpenAPI_DocumentsReasonsOfModels(t *testing.T) {
	reason := spec(t).Components.Schemas["Classification"].Value.Properties["reason"].Value
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range llm.Reasons() {
		if !strings.Contains(string(page), "| `"+code+"` |") {
			t.Errorf("docs/http.md: got no row for %s", code)
		}
		if !strings.Contains(reason.Description, "* `"+code+"`: ") {
			t.Errorf("got no explanation of %s in the document", code)
		}
	}
}

// contractConstants returns the typed string constants of package contract. It parses the source,
// because constants cannot be read by reflection.
func contractConstants(t *testing.T) map[string][]string {
	t.Helper()
	const dir = "../../contract/"
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), dir+f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			typ, named := spec.Type.(*ast.Ident)
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && named && lit.Kind == token.STRING {
				value, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[typ.Name] = append(found[typ.Name], value)
			}
			return true
		})
	}
	return found
}

// The limits in the document equal those of package contract.
func TestOpenAPI_LimitsMatchConstants(t *testing.T) {
	schemas := spec(t).Components.Schemas
	prop := func(schema, name string) *openapi3.Schema { return schemas[schema].Value.Properties[name].Value }
	cases := []struct {
		name      string
		got, want uint64
	}{
		{"prompt", *prop("Content", "prompt").MaxLength, contract.MaxPromptBytes},
		{"history", *prop("Request", "history").MaxItems, contract.MaxHistoryTurns},
		{"timeout_ms", uint64(*prop("Options", "timeout_ms").Max), contract.MaxAsyncTimeoutMS},
		{"domains", *prop("Classification", "domains").MaxItems, contract.MaxDomains},
		{"subtasks", *prop("Classification", "subtasks").MaxItems, contract.MaxSubtasks},
		{"subtask title", *prop("Subtask", "title").MaxLength, contract.MaxSubtaskTitle},
		{"a model's reply", *prop("ModelCall", "reply").MaxLength, contract.MaxReplyExcerpt},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("%s: got %d in the document and %d in contract", c.name, c.got, c.want)
		}
	}
	if got := schemas["AgentID"].Value.Pattern; got != contract.AgentIDPattern {
		t.Errorf("AgentID: got %s in the document and %s in contract", got, contract.AgentIDPattern)
	}
}
