package pycheck

import "strings"

// maxChain bounds how many links of a call chain are looked at.
const maxChain = 64

// chain returns the names of the call chain that ends before token i, nearest
// first: for the dot before "collect" in df.filter(x).limit(5).collect() it is
// limit, filter, df.
func (s *stmt) chain(i int) []string {
	var names []string
	for i >= 0 && s.toks[i].is(".") && len(names) < maxChain {
		i--
		for i >= 0 && (s.toks[i].is(")") || s.toks[i].is("]")) && s.toks[i].pair >= 0 {
			i = s.toks[i].pair - 1
		}
		if i < 0 || s.toks[i].kind != name {
			break
		}
		names = append(names, s.toks[i].text)
		i--
	}
	return names
}

// method reports whether token i is the name of a method that is called, as
// "collect" in df.collect().
func (s *stmt) method(i int) bool { return s.call(i) && s.at(i-1).is(".") }

// builtin reports whether token i calls a plain name, as eval(x).
func (s *stmt) builtin(i int) bool { return s.call(i) && !s.at(i-1).is(".") }

// args returns the tokens between the brackets that open at token i, at most
// maxArgs of them.
func (s *stmt) args(i int) []token {
	end := s.at(i).pair
	if end < 0 {
		return nil
	}
	return s.toks[i+1 : min(end, i+1+maxArgs)]
}

const maxArgs = 256

// hasKeyword reports whether name= stands among the arguments.
func hasKeyword(args []token, keyword string) bool {
	for i := range len(args) - 1 {
		if args[i].kind == name && args[i].text == keyword && args[i+1].is("=") {
			return true
		}
	}
	return false
}

// assigned returns the indices of the names a statement assigns to: of
// "a, b = f()", "n: int = 3" or "for k, v in x". Targets that are attributes
// or subscripts bind no name.
func (s *stmt) assigned() []int {
	from, end := 0, -1
	switch s.keyword() {
	case "for":
		for i, t := range s.toks {
			if t.is("for") {
				from = i + 1
			}
			if t.is("in") {
				end = i
				break
			}
		}
	default:
		if s.block {
			return nil
		}
		for i := 0; i < len(s.toks); i++ {
			if t := s.toks[i]; t.is("=") || t.is(":") {
				end = i
				break
			}
			if s.toks[i].pair > i && i > 0 { // f(a=1), x[i] = …; but not (a, b) = …
				i = s.toks[i].pair
			}
		}
	}
	var at []int
	for i := from; i < end; i++ {
		before, after := s.at(i-1), s.at(i+1)
		plain := s.toks[i].kind == name && !before.is(".") && !after.is(".") && !after.is("(") && !after.is("[")
		if plain && (i == from || before.is(",") || before.is("(") || before.is("*")) {
			at = append(at, i)
		}
	}
	return at
}

// unquote returns what stands between a literal's quotes, escapes kept.
func unquote(literal string) string {
	body := strings.TrimLeft(literal, "rRbBuUfFtT")
	for _, q := range []string{`"""`, "'''", `"`, "'"} {
		if rest, ok := strings.CutPrefix(body, q); ok {
			return strings.TrimSuffix(rest, q)
		}
	}
	return body
}

// isFormatted reports whether a string token is an f-string (or t-string).
func isFormatted(t token) bool {
	i := strings.IndexAny(t.text, `"'`)
	return t.kind == text && i >= 0 && strings.ContainsAny(t.text[:i], "fFtT")
}

// words calls fn for every identifier in code that no dot stands before.
func words(code string, fn func(string)) {
	for i := 0; i < len(code); {
		if !isNameByte(code[i]) {
			i++
			continue
		}
		from := i
		for i < len(code) && isNameByte(code[i]) {
			i++
		}
		if !isDigit(code[from]) && (from == 0 || code[from-1] != '.') {
			fn(code[from:i])
		}
	}
}

// isDocstring reports whether a statement is nothing but a string.
func (s *stmt) isDocstring() bool {
	for _, t := range s.toks {
		if t.kind != text {
			return false
		}
	}
	return true
}
