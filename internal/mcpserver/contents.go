package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// entry is a prompt, a resource or a template of resources, with its server.
type entry struct {
	gateway.Entry
	server *gateway.ServerInfo
}

// mayRequest reports whether the caller may send requests with the method to the server.
func (c *call) mayRequest(s *gateway.ServerInfo, method string) bool {
	return c.server.cfg.Tools.MayUseServer(c.http.Caller, s) && c.http.Caller.MayInvoke(s.Name+"."+method)
}

// prompts returns the prompts of the servers that the caller may use, by name. Names do not
// depend on what the caller may use.
func (c *call) prompts(servers []gateway.ServerInfo) map[string]entry {
	var list []entry
	var own []ownName
	for i := range servers {
		s := &servers[i]
		for _, e := range s.Prompts {
			list = append(list, entry{e, s})
			own = append(own, ownName{s, e.ID})
		}
	}
	usable := map[*gateway.ServerInfo]bool{}
	for i := range servers {
		usable[&servers[i]] = c.mayRequest(&servers[i], gateway.MethodGetPrompt)
	}
	named := map[string]entry{}
	for i, name := range clientNames(own, nil) {
		if usable[list[i].server] {
			named[name] = list[i]
		}
	}
	return named
}

// listPrompts returns the prompts that the caller may use, ordered by name.
func (c *call) listPrompts(cursor string) *mcp.ListPromptsResult {
	c.waitForServers()
	list := decodeEntries(c.prompts(c.servers()), func(p *mcp.Prompt, name string) { p.Name = name })
	result := &mcp.ListPromptsResult{Cacheable: private}
	result.Prompts, result.NextCursor = paginate(list, cursor)
	return result
}

// decodeEntries returns the definitions of entries by their ids for clients, which setID sets.
// It leaves out a definition that is not valid any more after its redaction.
func decodeEntries[T any](entries map[string]entry, setID func(*T, string)) map[string]*T {
	list := make(map[string]*T, len(entries))
	for id, e := range entries {
		decoded := new(T)
		if strictjson.UnmarshalAllowUnknown(e.Definition, decoded) == nil {
			setID(decoded, id)
			list[id] = decoded
		}
	}
	return list
}

// getPrompt returns the messages of a prompt.
func (c *call) getPrompt(params *mcp.GetPromptParams) (*mcp.GetPromptResult, error) {
	e, err := c.findPrompt(params.Name)
	if err != nil {
		return nil, err
	}
	result, err := request[mcp.GetPromptResult](c, e.server, gateway.MethodGetPrompt, &mcp.GetPromptParams{Name: e.ID, Arguments: params.Arguments})
	if err != nil {
		return nil, err
	}
	for _, m := range result.Messages {
		if m != nil {
			c.rewriteLinks(e.server, []mcp.Content{m.Content})
		}
	}
	return result, nil
}

// findPrompt returns the prompt with a name for clients.
func (c *call) findPrompt(name string) (entry, error) {
	e, ok := c.prompts(c.servers())[name]
	if !ok { // the router may have been restarted since the client asked for the list
		c.waitForServers()
		if e, ok = c.prompts(c.servers())[name]; !ok {
			message := "unknown prompt " + quoteName(name) + ": prompts/list returns those that may be used"
			return e, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
		}
	}
	return e, nil
}

// complete returns the values that an argument of a prompt or of a template of resources can
// have.
func (c *call) complete(params *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	var server *gateway.ServerInfo
	forwarded := &mcp.CompleteParams{Argument: params.Argument, Context: params.Context}
	switch ref := params.Ref; {
	case ref != nil && ref.Type == "ref/prompt":
		e, err := c.findPrompt(ref.Name)
		if err != nil {
			return nil, err
		}
		server, forwarded.Ref = e.server, &mcp.CompleteReference{Type: ref.Type, Name: e.ID}
	case ref != nil && ref.Type == "ref/resource":
		s, uri, ok := c.findResource(ref.URI)
		if !ok {
			return nil, errUnknownResource(jsonrpc.CodeInvalidParams, ref.URI)
		}
		server, forwarded.Ref = s, &mcp.CompleteReference{Type: ref.Type, URI: uri}
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: `ref must have the type "ref/prompt" or "ref/resource"`}
	}
	if !server.Completes {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil // clients ask for all arguments
	}
	result, err := request[mcp.CompleteResult](c, server, gateway.MethodComplete, forwarded)
	if err != nil {
		return nil, err
	}
	if result.Completion.Values == nil {
		result.Completion.Values = []string{}
	}
	return result, nil
}

// request sends a request to a server on behalf of the caller.
func request[R any](c *call, s *gateway.ServerInfo, method string, params any) (*R, error) {
	raw, err := strictjson.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode the parameters of %s: %w", method, err)
	}
	call := &mcphost.Call{Caller: c.http.Caller, RequestID: c.http.ID, TraceID: c.http.TraceID()}
	reply, err := c.server.cfg.Contents.Request(c.http.Request.Context(), call, s.Name, method, raw)
	if failed, ok := errors.AsType[*contract.ActionError](err); ok {
		return nil, c.newRequestError(method, failed)
	}
	if err != nil {
		return nil, err
	}
	result := new(R)
	if strictjson.UnmarshalAllowUnknown(reply, result) != nil { // it was valid before it was redacted
		return nil, c.newRequestError(method, &contract.ActionError{
			Code: contract.ActionBadResult, Severity: contract.SeveritySevere,
			Message: fmt.Sprintf("the result of %s.%s is not valid after the redaction that its server declares", s.Name, method),
		})
	}
	return result, nil
}

// requestErrorData is the data of an error of a request to a server.
type requestErrorData struct {
	RequestID string                `json:"request_id"`
	Error     *contract.ActionError `json:"error"`
}

// newRequestError returns the error of a request to a server as one of the protocol.
func (c *call) newRequestError(method string, e *contract.ActionError) error {
	code := int64(codeServerError)
	switch e.Code {
	case contract.ActionNotFound, contract.ActionForbidden, contract.ActionInvalidInput:
		code = jsonrpc.CodeInvalidParams
	case contract.ActionFailed:
		code = c.clientCode(method, e.RPCCode)
	}
	message := e.Message
	if e.Suggestion != "" {
		message += ": " + e.Suggestion
	}
	data, err := strictjson.Marshal(requestErrorData{c.http.ID, e})
	if err != nil {
		return fmt.Errorf("encode an error: %w", err)
	}
	return &jsonrpc.Error{Code: code, Message: message, Data: json.RawMessage(data)}
}

// codeResourceNotFound is the code for a resource that does not exist (MCP 2025-11-25,
// server/resources, error handling).
const codeResourceNotFound = -32002

// notFoundCode returns the code for a resource that does not exist, in the version of the client:
// since 2026-07-28, it is that of invalid parameters (SEP-2164).
func (c *call) notFoundCode() int64 {
	if c.http.Request.Header.Get("Mcp-Protocol-Version") >= listenVersion {
		return jsonrpc.CodeInvalidParams
	}
	return codeResourceNotFound
}

// clientCode returns the code for the client if a server has rejected a request with a code. Codes
// that the protocol defines for the method are kept. One about the method or the form of the message
// would refer to the message of the client, which is not the one that the server got.
func (c *call) clientCode(method string, code int64) int64 {
	switch code {
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInternalError:
		return code
	case codeResourceNotFound:
		if method == gateway.MethodReadResource {
			return c.notFoundCode()
		}
	case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError:
		return jsonrpc.CodeInternalError
	}
	return codeServerError
}
