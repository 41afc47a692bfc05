package pycheck

import (
	"fmt"
	"slices"
	"strings"
)

// rule is one thing to look for. check calls report once for each finding.
type rule struct {
	name     string
	severity Severity
	notebook bool // applies to notebooks only
	script   bool // applies to everything but notebooks
	check    func(p *source, report func(line int, message string))
}

// The rules about the form of the source; the lexer and the parser find these.
const (
	ruleBracket = "unbalanced-bracket"
	ruleString  = "unclosed-string"
	ruleIndent  = "inconsistent-indent"
)

// rules in no particular order: findings are sorted.
var rules = slices.Concat(formRules, errorRules, upkeepRules, notebookRules)

var formRules = []rule{
	{name: ruleBracket, severity: Error, check: problems(ruleBracket)},
	{name: ruleString, severity: Error, check: problems(ruleString)},
	{name: ruleIndent, severity: Error, check: problems(ruleIndent)},
	{name: "tab-indent", severity: Note, check: tabIndent},
	{name: "long-line", severity: Note, check: longLine},
	{name: "todo-comment", severity: Note, check: todoComment},
}

var errorRules = []rule{
	{name: "bare-except", severity: Warning, check: bareExcept},
	{name: "swallowed-exception", severity: Warning, check: swallowedException},
	{name: "mutable-default", severity: Warning, check: mutableDefault},
	{name: "none-comparison", severity: Warning, check: compareWith("None")},
	{name: "bool-comparison", severity: Note, script: true, check: compareWith("True", "False")},
	{name: "is-literal", severity: Error, check: isLiteral},
	{name: "eval-exec", severity: Error, check: evalExec},
	{name: "shell-true", severity: Error, check: shellTrue},
	{name: "hardcoded-secret", severity: Error, check: hardcodedSecret},
	{name: "sql-from-strings", severity: Error, check: sqlFromStrings},
	{name: "no-timeout", severity: Warning, check: noTimeout},
	{name: "open-without-with", severity: Warning, check: openWithoutWith},
	{name: "unreachable-code", severity: Warning, check: unreachable},
}

// bareExcept finds "except:", which also catches KeyboardInterrupt.
func bareExcept(p *source, report func(int, string)) {
	for _, s := range p.all {
		if s.block && s.keyword() == "except" && len(s.toks) == 1 {
			report(s.line(), "a bare except also catches KeyboardInterrupt and SystemExit; name the exceptions")
		}
	}
}

// swallowedException finds handlers of everything that do nothing.
func swallowedException(p *source, report func(int, string)) {
	for _, s := range p.all {
		if !s.block || s.keyword() != "except" || len(s.body) == 0 {
			continue
		}
		broad := len(s.toks) == 1 || slices.ContainsFunc(s.toks, func(t token) bool {
			return t.is("Exception") || t.is("BaseException")
		})
		if broad && doesNothing(s.body) {
			report(s.line(), "every error is caught here and dropped; log it, or catch only what is expected")
		}
	}
}

func doesNothing(body []*stmt) bool {
	for _, s := range body {
		if len(s.toks) != 1 || !s.toks[0].is("pass") && !s.toks[0].is("continue") && !s.toks[0].is("...") {
			return false
		}
	}
	return true
}

// mutableDefault finds def f(x=[]): one list shared by all calls.
func mutableDefault(p *source, report func(int, string)) {
	for _, s := range p.all {
		fn, at := s.defined()
		if s.keyword() != "def" || fn == "" {
			continue
		}
		params := s.args(at + 1)
		for i := range params {
			if !params[i].is("=") || i+1 >= len(params) || i == 0 {
				continue
			}
			v := params[i+1]
			made := i+2 < len(params) && params[i+2].is("(") && slices.Contains(mutableTypes, v.text)
			if v.is("[") || v.is("{") || made {
				report(v.line, fmt.Sprintf("the default of a parameter of %s is made once and shared by all calls; use None", fn))
			}
		}
	}
}

var mutableTypes = []string{"list", "dict", "set", "defaultdict", "OrderedDict", "Counter", "bytearray"}

// compareWith finds == and != against a singleton.
func compareWith(words ...string) func(*source, func(int, string)) {
	return func(p *source, report func(int, string)) {
		for _, s := range p.all {
			for i, t := range s.toks {
				if !t.is("==") && !t.is("!=") {
					continue
				}
				for _, side := range []token{s.at(i - 1), s.at(i + 1)} {
					if side.kind == name && slices.Contains(words, side.text) {
						report(t.line, comparisonAdvice(side.text, t.text))
						break
					}
				}
			}
		}
	}
}

func comparisonAdvice(word, operator string) string {
	if word == "None" {
		return fmt.Sprintf("“%s None” asks the object's own __eq__; write “is%s None”", operator, map[string]string{"!=": " not"}[operator])
	}
	return fmt.Sprintf("“%s %s” is longer than the condition itself; test the value, or “is %s”", operator, word, word)
}

// isLiteral finds x is "a": identity of a value is an accident.
func isLiteral(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if t.kind != name || t.text != "is" {
				continue
			}
			next := s.at(i + 1)
			if next.kind == name && next.text == "not" {
				next = s.at(i + 2)
			}
			if next.kind == text || next.kind == number {
				report(t.line, "“is” compares identity, not value; use ==")
			}
		}
	}
}

func evalExec(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if (t.text == "eval" || t.text == "exec") && s.builtin(i) {
				report(t.line, t.text+" runs whatever its argument says; parse the value instead, as with ast.literal_eval or json")
			}
		}
	}
}

func shellTrue(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if t.kind == name && t.text == "shell" && s.at(i+1).is("=") && s.at(i+2).is("True") {
				report(t.line, "shell=True lets the arguments run other commands; pass a list of arguments")
			}
		}
	}
}

var secretWords = []string{"password", "passwd", "secret", "token", "api_key", "apikey", "access_key", "account_key"}

// hardcodedSecret finds password = "…", as an assignment or an argument.
func hardcodedSecret(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			v := s.at(i + 2)
			if t.kind != name || !s.at(i+1).is("=") || v.kind != text || isFormatted(v) || s.at(i+3).is("+") {
				continue
			}
			if looksSecret(t.text, unquote(v.text)) {
				report(t.line, fmt.Sprintf("%s holds a secret in the source; read it from the environment or a secret store", t.text))
			}
		}
	}
}

func looksSecret(variable, value string) bool {
	variable = strings.ToLower(variable)
	named := slices.ContainsFunc(secretWords, func(w string) bool {
		return variable == w || strings.HasSuffix(variable, "_"+w) || strings.HasPrefix(variable, w+"_") && w != "token"
	})
	return named && len(value) >= 8 && !strings.ContainsAny(value, " {}<>$/") && strings.ToLower(value) != variable
}

// sqlFromStrings finds queries put together from text: execute(f"… {x}").
func sqlFromStrings(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if !slices.Contains([]string{"execute", "executemany", "sql", "read_sql", "read_sql_query"}, t.text) || !s.method(i) {
				continue
			}
			first := s.at(i + 2)
			after := s.at(i + 3)
			built := first.kind == text && (len(first.fields) > 0 || after.is("%") || after.is("+") || after.is(".") && s.at(i+4).is("format"))
			if built {
				report(t.line, "the query is put together from strings, so a value can become SQL; pass parameters")
			}
		}
	}
}

// noTimeout finds requests.get(…) without a timeout, which may wait for ever.
func noTimeout(p *source, report func(int, string)) {
	verbs := []string{"get", "post", "put", "patch", "delete", "head", "request"}
	for _, s := range p.all {
		for i, t := range s.toks {
			if !slices.Contains(verbs, t.text) || !s.method(i) || !s.at(i-2).is("requests") {
				continue
			}
			args := s.args(i + 1)
			spread := slices.ContainsFunc(args, func(t token) bool { return t.is("**") })
			if !hasKeyword(args, "timeout") && !spread && len(args) < maxArgs {
				report(t.line, fmt.Sprintf("requests.%s without timeout= waits for ever when the server does not answer", t.text))
			}
		}
	}
}

func openWithoutWith(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if t.text == "open" && s.builtin(i) && i == 2 && s.toks[1].is("=") { // f = open(…)
				report(t.line, "the file stays open when an error comes before close(); use with open(…)")
			}
		}
	}
}

// unreachable finds the first statement behind a return, raise, break or
// continue in the same block.
func unreachable(p *source, report func(int, string)) {
	ends := []string{"return", "raise", "break", "continue"}
	for _, s := range p.all {
		for i := range len(s.body) - 1 {
			if k := s.body[i].keyword(); slices.Contains(ends, k) {
				report(s.body[i+1].line(), "this never runs: the block ends with the "+k+" before it")
				break
			}
		}
	}
}
