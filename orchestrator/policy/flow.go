package policy

import (
	"slices"
	"strings"
)

// maxOutputText bounds the text of earlier outputs that is compared, newest first.
const maxOutputText = 1 << 20

// context is the history of a call: texts of the caller, and arguments and outputs of
// earlier calls. It is owned by
// one goroutine.
type context struct {
	named    string   // texts of the caller, in lower case
	outputs  []string // texts of earlier outputs and of env_context
	plain    []string // the same, normalized
	secrets  knownSecrets
	compared int    // bytes of outputs that were compared
	sent     string // arguments of earlier calls, normalized and joined
	earlier  []sentText
	public   string // texts of the caller, normalized
	envNamed []string
}

// sentText is an argument of an earlier call.
type sentText struct{ action, pointer, text string }

func newContext(c *Call, scan *scanner) *context {
	ctx := &context{named: strings.ToLower(c.Goal), public: normalize(c.Goal)}
	env, _ := readLeaves(c.EnvContext)
	for i := range env {
		ctx.addOutput(env[i].text)
		ctx.envNamed = append(ctx.envNamed, strings.ToLower(env[i].text))
	}
	ctx.addSecrets(scan.secretValues(c.EnvContext)...)
	left := maxOutputText
	var sent strings.Builder
	for i := range c.Earlier {
		step := &c.Earlier[i]
		arguments, _ := readLeaves(step.Arguments)
		for j := range arguments {
			sent.WriteString(normalize(arguments[j].text))
			ctx.earlier = append(ctx.earlier, sentText{step.Action, arguments[j].pointer, arguments[j].text})
		}
	}
	ctx.sent = sent.String()
	for _, step := range slices.Backward(c.Earlier) {
		output, _ := readLeaves(step.Output)
		server, tool, _ := strings.Cut(step.Action, ".")
		reveals := readTraits(&Call{Server: server, Tool: tool}, nil).reveals
		for j := range output {
			if left -= len(output[j].text); left < 0 {
				break
			}
			ctx.addOutput(output[j].text)
			if reveals {
				ctx.addSecrets(output[j].text)
			}
			if nested, ok := readLeaves([]byte(output[j].text)); ok && reveals {
				for k := range nested {
					ctx.addSecrets(nested[k].text)
				}
			}
		}
		ctx.addSecrets(scan.secretValues(step.Output)...)
	}
	return ctx
}

func (c *context) addOutput(text string) {
	c.outputs = append(c.outputs, text)
	c.plain = append(c.plain, normalize(text))
}

// addSecrets adds secrets, except those that the caller has written in the goal.
func (c *context) addSecrets(values ...string) {
	for _, value := range values {
		if !strings.Contains(c.named, strings.ToLower(value)) {
			c.secrets.add(value)
		}
	}
}

// isVerbatim reports whether the caller or an earlier output contains the text as a whole.
func (c *context) isVerbatim(text string) bool {
	return strings.Contains(c.named, strings.ToLower(text)) ||
		slices.ContainsFunc(c.outputs, func(output string) bool { return strings.Contains(output, text) }) ||
		slices.ContainsFunc(c.envNamed, func(value string) bool { return strings.Contains(value, strings.ToLower(text)) })
}

// names reports whether the caller has written a host or an address as a word.
func (c *context) names(word string) bool {
	for _, text := range append([]string{c.named}, c.envNamed...) {
		for at := 0; ; {
			i := strings.Index(text[at:], word)
			if i < 0 {
				break
			}
			start, end := at+i, at+i+len(word)
			if !isHostByte(byteAt(text, start-1)) && !isHostByte(byteAt(text, end)) ||
				byteAt(text, end) == '.' && !isHostByte(byteAt(text, end+1)) && !isHostByte(byteAt(text, start-1)) {
				return true
			}
			at = start + 1
		}
	}
	return false
}

func isHostByte(b byte) bool {
	return b == '.' || b == '-' || b == '_' || b == '@' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= 0x80
}

// byteAt returns text[i], or a space outside the text.
func byteAt(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return ' '
	}
	return text[i]
}

// copyGram is the length, in letters and digits, from which an equal part counts as copied.
const copyGram = 8

// Limits of comparisons.
const (
	maxCompared   = 64 << 10 // bytes of a text
	maxComparison = 32 << 20 // bytes of outputs in all comparisons
)

// copiedBytes returns how many bytes of a normalized text are in earlier outputs, and not in
// the texts of the caller.
func (c *context) copiedBytes(text string) int {
	text = text[:min(len(text), maxCompared)]
	grams := map[string][]int{}
	for i := 0; i+copyGram <= len(text); i++ {
		gram := text[i : i+copyGram]
		if !strings.Contains(c.public, gram) {
			grams[gram] = append(grams[gram], i)
		}
	}
	copied := make([]bool, len(text))
	for _, output := range c.plain {
		c.compared += len(output)
		if c.compared > maxComparison {
			break
		}
		for i := 0; i+copyGram <= len(output) && len(grams) > 0; i++ {
			gram := output[i : i+copyGram]
			for _, at := range grams[gram] {
				for j := at; j < at+copyGram; j++ {
					copied[j] = true
				}
			}
			delete(grams, gram)
		}
	}
	count := 0
	for _, c := range copied {
		if c {
			count++
		}
	}
	return count
}
