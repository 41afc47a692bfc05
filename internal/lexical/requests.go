package lexical

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
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

// SplitRequests splits a text into requests. It takes the clauses of
// [Model.SplitClauses], splits them at commas too, and chooses the boundaries
// for which the classifications of the parts are most confident in total
// (dynamic programming). For example, "add it to my list, book a table and then
// play rock and roll" is three requests.
func (m *Model) SplitRequests(text string) []string {
	segments := m.SplitClauses(text)
	pieces := m.splitPieces(text, segments)
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
			if sum := best[start] + m.requestLogOdds(run) - boundaryCost; sum > best[to] {
				best[to], from[to] = sum, start
			}
		}
	}
	var runs []string
	end := len(pieces)
	for to := len(pieces); to > 0; to = from[to] {
		start := from[to]
		if start > 0 && m.asksTheSame(text[pieces[from[start]].from:pieces[start-1].to], text[pieces[start].from:pieces[to-1].to]) {
			continue
		}
		runs = append(runs, text[pieces[start].from:pieces[end-1].to])
		end = start
	}
	for i, j := 0, len(runs)-1; i < j; i, j = i+1, j-1 {
		runs[i], runs[j] = runs[j], runs[i]
	}
	if rest != "" {
		runs = append(runs, m.SplitClauses(rest)...)
	}
	return runs
}

// asksTheSame reports whether two adjacent requests have the same intent, so
// that they are one request: "order a salad and a sandwich".
func (m *Model) asksTheSame(a, b string) bool {
	p, q := m.Classify(a), m.Classify(b)
	return p.BestIntent == q.BestIntent && p.Intent != contract.Unknown && q.Intent != contract.Unknown
}

// requestLogOdds returns the confidence, in log odds, that the run of pieces is
// one request.
func (m *Model) requestLogOdds(run string) float64 {
	p := m.Classify(run)
	if p.Intent == contract.Unknown || p.LabelOnly {
		return 0
	}
	return max(0, min(maxRequestLogOdds, logOdds(min(max(p.Confidence, 0.001), 0.999))))
}

type textSpan struct{ from, to int }

// splitPieces locates the clauses in the text, and splits them at commas.
func (m *Model) splitPieces(text string, segments []string) []textSpan {
	var list []textSpan
	beside := embeddedContent{text: text}
	at := 0
	for _, s := range segments {
		from := at + strings.Index(text[at:], s)
		at = from + len(s)
		if strings.Contains(s, "`") { // code may contain commas
			list = append(list, textSpan{from, at})
			continue
		}
		for rest := from; rest < at; {
			end := nextComma(&beside, rest, at)
			if strings.TrimSpace(text[rest:end]) != "" {
				list = append(list, textSpan{rest, end})
			}
			rest = end
			for rest < at && strings.ContainsRune(", ", rune(text[rest])) {
				rest++
			}
			if strings.HasPrefix(text[rest:at], "，") || strings.HasPrefix(text[rest:at], "、") {
				rest += len("，")
			}
		}
	}
	return list
}

// nextComma returns the position of the first comma that ends a clause, or to.
// Commas in embedded content do not count.
func nextComma(beside *embeddedContent, from, to int) int {
	s := beside.text[:to]
	for at := from; at < to; {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case r == '，', r == '、', r == ',' && at+1 < to && s[at+1] == ' ':
			return at
		case r == '{', r == '<':
			size = max(size, beside.endAt(at)-at)
		}
		at += size
	}
	return to
}
