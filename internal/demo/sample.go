package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
)

// SampleAgent and SampleAddress are the id and the address of the agent in the
// registry that `caprouter init` writes.
const (
	SampleAgent   = "word_counter"
	SampleAddress = "127.0.0.1:9101"
)

// SampleConfig specifies the router whose tasks the sample agent executes.
type SampleConfig struct {
	RouterURL string // without a trailing slash
	Issuer    string // auth.issuer of the router; "" = its default
	Logger    *slog.Logger
}

// ServeSample serves the tasks of the sample agent on the listener until ctx ends,
// then waits for running tasks. It closes the listener.
func ServeSample(ctx context.Context, listener net.Listener, cfg SampleConfig) error {
	s, err := newAgentServer(listener, agentkit.Config{
		AgentID: SampleAgent, JWKSURL: cfg.RouterURL + jwksPath, Issuer: cfg.Issuer, Logger: cfg.Logger,
	}, countWords)
	if err != nil {
		return err
	}
	g := run.New(ctx)
	g.Go("serve "+s.id, s.serveTasks)
	g.Go("stop "+s.id, func(ctx context.Context) error {
		<-ctx.Done()
		return shutdownAgents(context.WithoutCancel(ctx), []*agentServer{s})
	})
	return g.Wait()
}

// RegisterSample runs the sample agent until ctx ends, then waits for running tasks. It
// listens on a free port and registers itself at the router, which must have the grants
// of registry.yaml.
func RegisterSample(ctx context.Context, routerURL string) error {
	return agentkit.Run(ctx, agentkit.Config{
		AgentID: SampleAgent, RouterURL: routerURL, DrainTimeout: shutdownTimeout, Logger: slog.New(slog.DiscardHandler),
		Registration: contract.Registration{
			Description: "Counts words",
			Match:       contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
			Examples: map[string][]string{"count_words": {
				"how many words are in this text", "count the words of this text", "word count of the following text",
			}},
		},
	}, countWords)
}

// countWords is the work of word_counter. The text is inputs.text, or the part of
// the prompt behind its first colon.
func countWords(_ context.Context, task contract.Task) (contract.Result, error) {
	text := textInput(task, "text")
	if text == "" {
		_, text, _ = strings.Cut(strings.ReplaceAll(agentkit.Prompt(task), "：", ":"), ":")
	}
	if text = strings.TrimSpace(text); text == "" {
		return agentkit.Failure(`there is no text to count: write it behind a colon, for example "How many words are in this text: to be or not to be"`), nil
	}
	words, characters, lines := numberOfWords(text), utf8.RuneCountInString(text), 1+strings.Count(text, "\n")
	return newResult(contract.ResultSuccess,
		fmt.Sprintf("%s, %s, %s", count(words, "word"), count(characters, "character"), count(lines, "line")),
		map[string]any{"words": words, "characters": characters, "lines": lines}, nil,
		"a word is a run of letters and digits, or one Chinese or Japanese character")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// numberOfWords counts runs of letters, digits and apostrophes. Chinese and Japanese
// have no spaces between words, so each of their characters counts as one.
func numberOfWords(text string) int {
	n, inWord := 0, false
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			n, inWord = n+1, false
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if !inWord {
				n, inWord = n+1, true
			}
		case !unicode.IsMark(r) && r != '\'' && r != '’' && r != '-':
			inWord = false
		}
	}
	return n
}
