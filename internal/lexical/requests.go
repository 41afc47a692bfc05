package lexical

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/calibration"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

const (
	// maxRequestPieces bounds the pieces of one request, and maxPieces the
	// pieces of a text.
	maxRequestPieces = 6
	maxPieces        = 64
	// boundaryCost is the gain in log odds that a boundary between two requests
	// requires: "play rock and roll" is one request.
	boundaryCost = 1.5
	// maxRequestLogOdds bounds the contribution of one request, so that a very
	// confident one does not outweigh a boundary.
	maxRequestLogOdds = 4.0
)

// Text is a text whose parts are classified. Splitting a text into requests and
// deciding what each asks for read the same parts several times, so every part is
// classified once. One goroutine owns it.
type Text struct {
	model       *Model
	text        string
	clauses     []string               // nil until Clauses is called
	whole       *Prediction            // of the text
	predictions map[string]*Prediction // of parts of it
}

// NewText returns the text, to be classified by the model.
func (m *Model) NewText(text string) *Text { return &Text{model: m, text: text} }

// Clauses returns the clauses of the text: see [Model.SplitClauses].
func (t *Text) Clauses() []string {
	if t.clauses == nil {
		t.clauses = t.model.SplitClauses(t.text)
	}
	return t.clauses
}

// Classify predicts the intent and domains of a part of the text. The caller must not
// modify the prediction.
func (t *Text) Classify(part string) *Prediction {
	if t.isWhole(part) {
		if t.whole == nil {
			p := t.model.Classify(t.text)
			t.whole = &p
		}
		return t.whole
	}
	if p, ok := t.predictions[part]; ok {
		return p
	}
	p := t.model.Classify(part)
	if t.predictions == nil {
		t.predictions = map[string]*Prediction{}
	}
	t.predictions[part] = &p
	return &p
}

// Index returns the position of a part of the text.
func (t *Text) Index(part string) int { return strings.Index(t.text, part) }

// isWhole reports whether the part contains all words of the text: at most white space
// and punctuation follow that end a clause.
func (t *Text) isWhole(part string) bool {
	return strings.HasPrefix(t.text, part) && strings.Trim(t.text[len(part):], " \t\r\n.,;") == ""
}

// IsOneClause reports whether the text is a single clause without commas, and therefore
// at most one request.
func (t *Text) IsOneClause() bool {
	clauses := t.Clauses()
	return len(clauses) == 1 && t.isWhole(clauses[0]) && !strings.ContainsAny(clauses[0], ",，、")
}

// SplitRequests splits the text into requests. It takes the clauses of
// [Model.SplitClauses], splits them at commas too, and chooses the boundaries
// for which the classifications of the parts are most confident in total
// (dynamic programming). For example, "add it to my list, book a table and then
// play rock and roll" is three requests.
func (t *Text) SplitRequests() []string {
	text, segments := t.text, t.Clauses()
	pieces := splitPieces(text, segments)
	if len(pieces) < 2 {
		return segments
	}
	rest := ""
	if len(pieces) > maxPieces {
		rest = text[pieces[maxPieces].from:]
		pieces = pieces[:maxPieces]
	}
	// best[i] is the score of the best split of the first i pieces, whose last
	// request starts at from[i].
	best := make([]float64, len(pieces)+1)
	from := make([]int, len(pieces)+1)
	for to := 1; to <= len(pieces); to++ {
		best[to] = math.Inf(-1)
		for start := max(0, to-maxRequestPieces); start < to; start++ {
			run := text[pieces[start].from:pieces[to-1].to]
			clauses := pieces[start].begins && pieces[to-1].ends
			if sum := best[start] + t.requestLogOdds(run, clauses) - boundaryCost; sum > best[to] {
				best[to], from[to] = sum, start
			}
		}
	}
	var runs []string
	end := len(pieces)
	for to := len(pieces); to > 0; to = from[to] {
		start := from[to]
		if start > 0 && t.asksTheSame(text[pieces[from[start]].from:pieces[start-1].to], text[pieces[start].from:pieces[to-1].to]) {
			continue
		}
		runs = append(runs, text[pieces[start].from:pieces[end-1].to])
		end = start
	}
	for i, j := 0, len(runs)-1; i < j; i, j = i+1, j-1 {
		runs[i], runs[j] = runs[j], runs[i]
	}
	if rest != "" {
		runs = append(runs, t.model.SplitClauses(rest)...)
	}
	return runs
}

// asksTheSame reports whether two adjacent requests have the same intent, so
// that they are one request: "order a salad and a sandwich".
func (t *Text) asksTheSame(a, b string) bool {
	p, q := t.Classify(a), t.Classify(b)
	return p.BestIntent == q.BestIntent && p.Intent != contract.Unknown && q.Intent != contract.Unknown
}

// requestLogOdds returns the confidence, in log odds, that the run of pieces is
// one request. If it consists of whole clauses, it need not be sure which intent of its
// agents is meant: "my bin was not emptied" is a request to the agent for waste. A comma
// alone divides only sure intents: "locked out of my laptop, just came back from vacation".
func (t *Text) requestLogOdds(run string, clauses bool) float64 {
	p := t.Classify(run)
	if p.Intent == contract.Unknown || p.LabelOnly {
		return 0
	}
	confidence := p.Confidence
	if clauses {
		confidence = p.JointConfidence
	}
	return max(0, min(maxRequestLogOdds, calibration.Logit(min(max(confidence, 0.001), 0.999))))
}

// textSpan is a part of a text between commas. begins and ends report whether a clause
// begins and ends with it.
type textSpan struct {
	from, to     int
	begins, ends bool
}

// splitPieces locates the clauses in the text, and splits them at commas.
func splitPieces(text string, segments []string) []textSpan {
	var list []textSpan
	beside := token.NewEmbedded(text)
	at := 0
	for _, s := range segments {
		from := at + strings.Index(text[at:], s)
		at = from + len(s)
		if strings.Contains(s, "`") { // code may contain commas
			list = append(list, textSpan{from, at, true, true})
			continue
		}
		first := len(list)
		for rest := from; rest < at; {
			end := nextComma(&beside, rest, at)
			if strings.TrimSpace(text[rest:end]) != "" {
				list = append(list, textSpan{from: rest, to: end})
			}
			rest = end
			for rest < at && strings.ContainsRune(", ", rune(text[rest])) {
				rest++
			}
			if strings.HasPrefix(text[rest:at], "，") || strings.HasPrefix(text[rest:at], "、") {
				rest += len("，")
			}
		}
		if first < len(list) {
			list[first].begins, list[len(list)-1].ends = true, true
		}
	}
	return list
}

// nextComma returns the position of the first comma that ends a clause, or to.
// Commas in embedded content do not count.
func nextComma(beside *token.Embedded, from, to int) int {
	s := beside.Text[:to]
	for at := from; at < to; {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case r == '，', r == '、', r == ',' && at+1 < to && s[at+1] == ' ':
			return at
		case r == '{', r == '<':
			size = max(size, beside.EndAt(at)-at)
		}
		at += size
	}
	return to
}
