package lexical

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
)

const (
	// maxRequestPieces is how many pieces one request may be made of, and mostPieces
	// how many a text is looked at for.
	maxRequestPieces = 6
	maxPieces        = 64
	// boundaryCost is what a border between two requests must be worth, in log odds:
	// "play rock and roll" is one.
	boundaryCost = 1.5
	// maxRequestLogOdds is the most one request adds, so that one very sure request
	// does not outweigh a border.
	maxRequestLogOdds = 4.0
)

// SplitRequests cuts a text into the requests it is made of, by what the model makes of
// every run of its pieces: borders stand where the runs between them are together
// the surest. Pieces are what [Model.Segments] gives, cut at commas besides, so
// that "add it to my list, book a table and then play rock and roll" is three
// requests. Where the model is not calibrated, Divide is Segments.
func (m *Model) SplitRequests(text string) []string {
	segments := m.SplitClauses(text)
	if m.statistical == nil {
		return segments
	}
	pieces := m.splitPieces(text, segments)
	if len(pieces) < 2 {
		return segments
	}
	rest := ""
	if len(pieces) > maxPieces {
		rest = text[pieces[maxPieces].from:]
		pieces = pieces[:maxPieces]
	}
	// best[i] is the best division of the first i pieces, its last run beginning
	// at from[i].
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
	for to := len(pieces); to > 0; to = from[to] {
		runs = append(runs, text[pieces[from[to]].from:pieces[to-1].to])
	}
	for i, j := 0, len(runs)-1; i < j; i, j = i+1, j-1 {
		runs[i], runs[j] = runs[j], runs[i]
	}
	if rest != "" {
		runs = append(runs, m.SplitClauses(rest)...)
	}
	return runs
}

// requestLogOdds is how sure it is, in log odds, that the run is a request.
func (m *Model) requestLogOdds(run string) float64 {
	p := m.Classify(run)
	if p.Intent == contract.Unknown || p.LabelOnly {
		return 0
	}
	return max(0, min(maxRequestLogOdds, logOdds(min(max(p.Confidence, 0.001), 0.999))))
}

type textSpan struct{ from, to int }

// splitPieces finds the segments in the text and cuts them at commas.
func (m *Model) splitPieces(text string, segments []string) []textSpan {
	var list []textSpan
	beside := embeddedContent{text: text}
	at := 0
	for _, s := range segments {
		from := at + strings.Index(text[at:], s)
		at = from + len(s)
		if strings.Contains(s, "`") { // code has commas of its own
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

// nextComma is where the first comma between from and to stands that ends a
// clause, or to. Material has commas of its own.
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
