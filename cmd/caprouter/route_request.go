package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// newRequest builds the request. Errors name the flag, and occur before anything is
// sent.
func (f *routeFlags) newRequest(cmd *cobra.Command, text string) (*contract.Request, error) {
	text, err := readPrompt(cmd, text)
	if err != nil {
		return nil, err
	}
	inputs, err := parseInputs(cmd, f.inputs)
	if err != nil {
		return nil, err
	}
	req := &contract.Request{
		Content:   contract.Content{Prompt: text, Inputs: inputs},
		Metadata:  contract.Metadata{Locale: f.locale},
		SessionID: f.session,
		Options:   contract.Options{DryRun: f.dryRun, Explain: f.explain, TimeoutMS: int(f.timeout.Milliseconds())},
	}
	if f.agent != "" {
		if !contract.ValidAgentID(f.agent) {
			return nil, cmdline.UsageErrorf(cmd, "--agent %q is not an agent id: lower-case letters, digits, _ and -, a letter first", f.agent)
		}
		req.AgentID = &f.agent
	}
	if f.fallback != "" {
		if !slices.Contains([]string{"A", "B", "C"}, f.fallback) {
			return nil, cmdline.UsageErrorf(cmd, "--fallback %q is not A, B or C", f.fallback)
		}
		req.Options.Fallback = &f.fallback
	}
	if f.choose != "" {
		request, option, ok := strings.Cut(f.choose, "=")
		if !ok || request == "" || option == "" {
			return nil, cmdline.UsageErrorf(cmd, "--choose %q is not REQUEST=OPTION, as the router's question names them", f.choose)
		}
		req.Clarification = &contract.ClarificationChoice{RequestID: request, OptionID: option}
	}
	return req, nil
}

// readPrompt returns the argument, or standard input for "-".
func readPrompt(cmd *cobra.Command, text string) (string, error) {
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), contract.MaxPromptBytes+1))
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		text = string(data)
	}
	switch {
	case len(text) > contract.MaxPromptBytes:
		return "", fmt.Errorf("the text is longer than %d KiB: pass long material with --input NAME=@FILE", contract.MaxPromptBytes>>10)
	case !utf8.ValidString(text):
		return "", errors.New("the text is not UTF-8")
	case strings.TrimSpace(text) == "":
		return "", cmdline.UsageErrorf(cmd, "the text is empty")
	}
	return text, nil
}

// parseInputs converts NAME=VALUE and NAME=@FILE to JSON strings.
func parseInputs(cmd *cobra.Command, args []string) (map[string]json.RawMessage, error) {
	if len(args) == 0 {
		return nil, nil
	}
	inputs := make(map[string]json.RawMessage, len(args))
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		switch _, twice := inputs[name]; {
		case !ok || name == "":
			return nil, cmdline.UsageErrorf(cmd, "--input %q is not NAME=VALUE or NAME=@FILE", arg)
		case name == "prompt":
			return nil, cmdline.UsageErrorf(cmd, "--input prompt: agents receive the text itself under this name: choose another")
		case twice:
			return nil, cmdline.UsageErrorf(cmd, "--input %s is given twice", name)
		}
		if path, isFile := strings.CutPrefix(value, "@"); isFile {
			data, err := readInput(path)
			if err != nil {
				return nil, fmt.Errorf("--input %s: %w", name, err)
			}
			value = string(data)
		}
		if !utf8.ValidString(value) {
			return nil, fmt.Errorf("--input %s: it is not UTF-8 text", name)
		}
		raw, err := strictjson.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("--input %s: %w", name, err)
		}
		inputs[name] = raw
	}
	return inputs, nil
}

// readInput fails if the file is larger than a request may be.
func readInput(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, localfile.ShortenError(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, contract.MaxBodyBytes+1))
	if len(data) > contract.MaxBodyBytes {
		return nil, fmt.Errorf("%s is larger than %d KiB, which is all a request may hold", path, contract.MaxBodyBytes>>10)
	}
	return data, localfile.ShortenError(err)
}
