package lexical

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/token"
)

// Words of English, Portuguese and Spanish, folded, and pairs of Chinese characters.
const (
	// courtesyWords are words without a request, in addition to lexicon.StopWords.
	courtesyWords = `
thank morning afternoon evening night day regards best cheers dear howdy sincerely advance appreciate appreciated sorry great good ok
okay sure yes nice team everyone everybody folks guys welcome bye goodbye greetings hope well much help something question urgent
asap soon today possible quick quickly
bom boa dia tarde noite tchau adeus abraco abracos atenciosamente cumprimentos desde caro cara pessoal tudo bem valeu agradeco ajuda ajudar
duvida pergunta urgente hoje possivel
buen buena buenos buenas dias tarde tardes noche noches tal adios saludos cordial cordiales atentamente antemano estimado estimada agradezco muchas vale ayuda ayudar pregunta hoy
posible
谢谢 你好 您好 早上 上好 感谢 非常 请问`
	// subjectWords begin a statement or a noun phrase.
	subjectWords = `
i im ive my we our it its this that these those there he she they his her their the a an you your
eu meu minha meus minhas nos nosso nossa isso isto este esta ele ela eles elas o os as um uma
yo mi mis nuestro nuestra esto ese esa el la los las un una ella ellos
我们 这个 那个`
	// statementWords begin a statement without a subject, also after "not": "já devia ter chegado".
	statementWords = `
already still yesterday was were been because since
ja ainda ontem porque estou estava tenho tinha fiz recebi comprei pedi paguei chegou veio foi era ha devia deveria fico aguardo consegui consigo
ya aun todavia ayer estoy estaba tengo llevo hice recibi llego fue hace deberia quedo sigo espero he ha`
	// wishWords make a statement a request.
	wishWords = `
want need like wish would please can could
quero queremos queria preciso precisamos gostaria gostariamos pode poderia
quiero queremos quisiera quisieramos necesito necesitamos gustaria puede puedes podria
需要 我想 我要 帮我`
	// questionWords begin a question, also without a question mark.
	questionWords = `
what when where who why how which
quando onde quem qual quais porque
cuando donde quien cual cuanto cuantos`
	// secondWords follow the first word of a clause that continues the one before:
	// a preposition follows a noun ("cons of remote work"), and the article of
	// something known ("list the problems") refers to what was named before.
	secondWords = `
of in on at by for from with without to and or
the this that these those it its them what which how my our your his her their
de do da dos das em no na para por com sem e
o os as isso isto este esta esse essa meu minha seu sua que
del en con sin y
el la los las lo esto eso mi tu su`
	// negationWords are before the verb of a statement.
	negationWords = `nao no not`
	// sequenceWords begin another request, unlike "and".
	sequenceWords = `then depois luego después despues 然后`
)

// maxUnknownRequests bounds the requests that FindUnknownRequests returns. A text
// with more of them is a request with material, such as a letter to be reviewed.
const maxUnknownRequests = 3

// FindUnknownRequests returns the clauses of the text, in order, that ask for something
// which no intent of the corpus means, or an intent of which the classifier is too unsure to
// divide the text. understood are the intents that other clauses mean. A clause is none of
// them if it has fewer than two content words, unless it is a question with a number, states
// something without asking, or continues an understood clause: "eggs to my list" in "add milk
// and eggs to my list".
func (t *Text) FindUnknownRequests(understood []string) []string {
	clauses := t.Clauses()
	if len(clauses) < 2 {
		return nil
	}
	var requests []string
	weak := weakBoundaries(t.text, clauses)
	for i, clause := range clauses {
		p := t.Classify(clause)
		if p.LabelOnly || p.DomainOnly || slices.Contains(understood, p.Intent) {
			continue
		}
		shape := t.model.describeClause(clause)
		if i == len(clauses)-1 && shape.known == 0 && isProperName(clause) {
			continue // the name of the sender
		}
		if shape.isRequest(weak[i] || weak[i+1]) && (shape.known == 0 || !slices.Contains(understood, p.BestIntent)) {
			requests = append(requests, clause)
		}
	}
	if len(requests) > maxUnknownRequests {
		return nil
	}
	return requests
}

// HasKnownContent reports whether the corpus contains a content word of a part of the text that
// is no word of a domain.
func (t *Text) HasKnownContent(part string) bool { return t.model.describeClause(part).known > 0 }

// RemoveClauses returns the parts of a segment of the text that remain without the clauses,
// in order.
func (t *Text) RemoveClauses(segment string, clauses []string) []string {
	from := strings.Index(t.text, segment)
	to := from + len(segment)
	var kept []string
	begin, end, at := from, from, 0 // begin is -1 after a removed clause
	for _, clause := range t.Clauses() {
		start := at + strings.Index(t.text[at:], clause)
		at = start + len(clause)
		switch {
		case at <= from || start >= to:
		case start >= from && at <= to && slices.Contains(clauses, clause):
			if begin >= 0 && begin < end {
				kept = append(kept, t.text[begin:end])
			}
			begin = -1
		default:
			if begin < 0 {
				begin = start
			}
			end = min(at, to)
		}
	}
	if begin >= 0 && begin < end {
		kept = append(kept, t.text[begin:end])
	}
	return kept
}

// weakBoundaries reports which boundaries before the clauses are weak; the last
// element is for the end of the text.
func weakBoundaries(text string, clauses []string) []bool {
	weak := make([]bool, len(clauses)+1)
	at := 0
	for i, clause := range clauses {
		from := at + strings.Index(text[at:], clause)
		_, last := utf8.DecodeLastRuneInString(text[:at])
		weak[i] = i > 0 && isWeakBoundary(text[at-last:from])
		at = from + len(clause)
	}
	return weak
}

// isWeakBoundary reports whether the text between two clauses, with the last character of
// the first one, joins them by no more than "and" or a comma.
func isWeakBoundary(between string) bool {
	if strings.ContainsAny(between, ".;!?\n。；！？।؟") {
		return false
	}
	return !slices.ContainsFunc(strings.Fields(sequenceWords), func(w string) bool { return strings.Contains(strings.ToLower(between), w) })
}

// clauseShape describes the words of a clause.
type clauseShape struct {
	words         int    // all words
	known, other  int    // content words that the corpus contains, without domains, and that it does not contain
	numbers       int    // words without a letter
	first, second string // folded
	wishes, asks  bool
	unspaced      bool
}

func (m *Model) describeClause(clause string) clauseShape {
	s := clauseShape{asks: strings.ContainsAny(clause, "?？؟"), unspaced: strings.ContainsFunc(clause, token.IsUnspaced)}
	w := token.NewScanner()
	w.Labels = m.labels
	for w.Reset(clause); w.Next(); {
		if w.Label != nil {
			continue
		}
		word := string(w.Word)
		switch s.words++; s.words {
		case 1:
			s.first = word
		case 2:
			s.second = word
		}
		s.wishes = s.wishes || isListed(wishWords, word)
		n, known := m.words[string(token.Stem(token.FoldNumber(w.Word)))]
		switch {
		case !strings.ContainsFunc(word, unicode.IsLetter):
			s.numbers++
		case isListed(courtesyWords, word), known && (m.info[n].stop || m.info[n].domain):
		case known:
			s.known++
		default:
			s.other++
		}
	}
	return s
}

// isRequest reports whether a clause asks for something. Beside a weak boundary it
// may also be a part of a list.
func (s *clauseShape) isRequest(weak bool) bool {
	question := isListed(questionWords, s.first)
	switch {
	case s.known+s.other < 2:
		return question && s.known+s.other == 1 && s.numbers > 0 // "where is order 5512"
	case s.asks, s.wishes, question:
		return true
	case isListed(subjectWords, s.first), isListed(statementWords, s.first), isListed(negationWords, s.first) && isListed(statementWords, s.second):
		return false
	}
	return !weak || !s.unspaced && s.words >= 3 && !isListed(secondWords, s.second)
}

// maxProperName bounds the words of the name of a person.
const maxProperName = 3

// isProperName reports whether a clause consists of two or more words of letters that begin with a capital.
func isProperName(clause string) bool {
	words := strings.Fields(clause)
	for _, word := range words {
		if r, _ := utf8.DecodeRuneInString(word); !unicode.IsUpper(r) || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
			return false
		}
	}
	return 2 <= len(words) && len(words) <= maxProperName
}

// isListed reports whether a list separated by white space contains the word.
func isListed(list, word string) bool {
	for listed := range strings.FieldsSeq(list) {
		if listed == word {
			return true
		}
	}
	return false
}
