package lexical

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Corpus is what a registry says about its intents and domains. Its order does
// not matter; an intent that is there twice is taken together.
type Corpus struct {
	Intents []IntentDoc
	Domains []string
}

// IntentDoc is what the agents that serve one intent say about it.
type IntentDoc struct {
	Name     string
	Examples []string // utterances that ask for it
	Keywords []string // of the agents that serve it
	Agents   []string // their ids
	// Descriptions are what the agents that serve it say of themselves, NotFor
	// what they say they are not for, Domains what they declare.
	Descriptions []string
	NotFor       []string
	Domains      []string
}

// A pattern is one thing a text may say: the name of an intent, an example of
// it, or a keyword that speaks for it.
type pattern struct {
	kind    kind
	intent  int32
	words   []int32 // distinct; of an example the content words, if it has any
	content int     // how many of them are content words
	weight  float64 // of the content words together
	text    string  // of an example
}

type kind uint8

const (
	isName kind = iota
	isExample
	isKeyword
)

// A domainName is a way to write a domain: its words, or all of them joined.
type domainName struct {
	domain int32
	words  []int32
}

// Train builds the model of a corpus. It takes a fraction of a second for
// 15,000 examples and keeps the strings of the corpus, not copies.
func Train(c Corpus) *Model {
	t := &trainer{
		m:     &Model{words: map[string]int32{}, domainWords: map[string]int32{}},
		texts: newWords(),
	}
	for w := range strings.FieldsSeq(stopWords) {
		t.m.info[t.addWord([]byte(w))].stop = true
	}
	docs := merge(c.Intents)
	for _, d := range docs {
		t.addIntent(d)
	}
	for _, name := range distinct(c.Domains) {
		t.addDomain(name)
	}
	for i := range docs {
		t.m.implied = append(t.m.implied, implied(&docs[i], t.m.domains))
	}
	t.addLabels(docs)
	t.weigh()
	t.index()
	t.m.stats = learn(docs)
	return t.m
}

type trainer struct {
	m     *Model
	texts words
}

// merge sorts the documents by name and joins those of the same name.
func merge(docs []IntentDoc) []IntentDoc {
	byName := make(map[string]IntentDoc, len(docs))
	for _, d := range docs {
		have := byName[d.Name]
		byName[d.Name] = IntentDoc{
			Name:         d.Name,
			Examples:     slices.Concat(have.Examples, d.Examples),
			Keywords:     slices.Concat(have.Keywords, d.Keywords),
			Agents:       slices.Concat(have.Agents, d.Agents),
			Descriptions: slices.Concat(have.Descriptions, d.Descriptions),
			NotFor:       slices.Concat(have.NotFor, d.NotFor),
			Domains:      slices.Concat(have.Domains, d.Domains),
		}
	}
	merged := make([]IntentDoc, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		merged = append(merged, byName[name])
	}
	return merged
}

// implied is the domain that goes without saying for an intent: the only one its
// agents declare. Its capacity is its length, so that a caller who appends to it
// gets a copy.
func implied(d *IntentDoc, domains []string) []string {
	declared := distinct(d.Domains)
	if len(declared) != 1 {
		return nil
	}
	if _, ok := slices.BinarySearch(domains, declared[0]); !ok {
		return nil
	}
	return declared[:1:1]
}

func (t *trainer) addIntent(d IntentDoc) {
	intent := int32(len(t.m.intents))
	t.m.intents = append(t.m.intents, d.Name)
	vocabulary := map[int32]bool{}

	name := t.wordsOf(splitCamel(d.Name))
	t.add(pattern{kind: isName, intent: intent, words: name}, vocabulary)
	for _, written := range []string{d.Name, joined(d.Name)} { // fooBar, and codereview
		if as := t.wordsOf(written); len(as) > 0 && !slices.Equal(as, name) {
			t.add(pattern{kind: isExample, intent: intent, words: t.contentOf(as)}, vocabulary)
		}
	}
	for _, text := range distinct(d.Examples) {
		if all := t.wordsOf(text); len(all) > 0 {
			t.add(pattern{kind: isExample, intent: intent, words: t.contentOf(all), text: text}, vocabulary)
		}
	}
	for _, text := range distinct(d.Keywords) {
		if all := t.wordsOf(text); t.countContent(all) > 0 {
			t.add(pattern{kind: isKeyword, intent: intent, words: all}, nil)
		}
	}
	t.m.vocabulary = append(t.m.vocabulary, slices.Sorted(maps.Keys(vocabulary)))
}

// add keeps a pattern and, if there is a vocabulary, enters its content words.
func (t *trainer) add(p pattern, vocabulary map[int32]bool) {
	p.content = t.countContent(p.words)
	t.m.patterns = append(t.m.patterns, p)
	for _, w := range p.words {
		if vocabulary == nil || t.m.info[w].stop {
			continue
		}
		if !vocabulary[w] {
			vocabulary[w] = true
			t.m.info[w].intents++
		}
	}
}

// contentOf leaves the stop words out, unless there is nothing else.
func (t *trainer) contentOf(all []int32) []int32 {
	content := slices.DeleteFunc(slices.Clone(all), func(w int32) bool { return t.m.info[w].stop })
	if len(content) == 0 {
		return all
	}
	return content
}

func (t *trainer) countContent(words []int32) int {
	n := 0
	for _, w := range words {
		if !t.m.info[w].stop {
			n++
		}
	}
	return n
}

// wordsOf returns the distinct words of a text in the order they come.
func (t *trainer) wordsOf(text string) []int32 {
	var all []int32
	for t.texts.reset(text); t.texts.next(); {
		if w := t.addWord(t.texts.word); !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// addWord returns the number of a folded word, a new one if it is new.
func (t *trainer) addWord(word []byte) int32 {
	key := stem(singular(word))
	if w, ok := t.m.words[string(key)]; ok {
		return w
	}
	w := int32(len(t.m.info))
	t.m.words[string(key)] = w
	t.m.info = append(t.m.info, wordInfo{})
	return w
}

// addDomain enters a domain and the words of its name. Domains are names: their
// words are compared in number only, so that accounting is not account.
func (t *trainer) addDomain(name string) {
	domain := int32(len(t.m.domains))
	t.m.domains = append(t.m.domains, name)
	seen := [][]int32{}
	for _, written := range []string{splitCamel(name), name, joined(name)} {
		var all []int32
		for t.texts.reset(written); t.texts.next(); {
			form := singular(t.texts.word)
			w, ok := t.m.domainWords[string(form)]
			if !ok {
				w = int32(len(t.m.domainPosts))
				t.m.domainWords[string(form)] = w
				t.m.domainPosts = append(t.m.domainPosts, nil)
			}
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
			t.m.info[t.addWord(form)].domain = true
		}
		if len(all) == 0 || slices.ContainsFunc(seen, func(s []int32) bool { return slices.Equal(s, all) }) {
			continue
		}
		seen = append(seen, all)
		// Looked at when its first word is found; the others are checked then.
		t.m.domainPosts[all[0]] = append(t.m.domainPosts[all[0]], domainName{domain: domain, words: all})
	}
}

// weigh gives every word its weight: the fewer intents have it, the more it
// says about the one meant.
func (t *trainer) weigh() {
	n := float64(len(t.m.intents))
	t.m.unknownWeight = math.Log1p(n)
	for i := range t.m.info {
		t.m.info[i].weight = math.Log1p(n / float64(max(t.m.info[i].intents, 1)))
	}
	for i := range t.m.patterns {
		p := &t.m.patterns[i]
		slices.Sort(p.words) // the order in which the sum is taken, here and later
		for _, w := range p.words {
			if !t.m.info[w].stop {
				p.weight += t.m.info[w].weight
			}
		}
	}
}

// index enters every pattern under as few words as find it whenever it matters.
// A name is entered under each content word, a keyword under its rarest word,
// and an example under its rarest words until those that are left could not
// make up [leastCover] of its weight: a text that has none of the former is too
// far from it. So a word that is in every example does not lead to them all.
func (t *trainer) index() {
	use := make([]int, len(t.m.info)) // how many patterns have the word
	for i := range t.m.patterns {
		for _, w := range t.m.patterns[i].words {
			use[w]++
		}
	}
	t.m.posts = make([][]int32, len(t.m.info))
	var byRarity []int32
	for i := range t.m.patterns {
		p := &t.m.patterns[i]
		byRarity = append(byRarity[:0], p.words...)
		slices.SortStableFunc(byRarity, func(a, b int32) int { return use[a] - use[b] })
		for _, w := range byRarity[:t.prefix(p, byRarity)] {
			t.m.posts[w] = append(t.m.posts[w], int32(i))
		}
	}
}

// prefix is how many of the pattern's words, rarest first, it is entered under.
func (t *trainer) prefix(p *pattern, byRarity []int32) int {
	switch {
	case p.kind == isName:
		return len(byRarity)
	case p.kind == isKeyword, p.content == 0:
		return min(1, len(byRarity))
	}
	left := p.weight
	for i, w := range byRarity {
		left -= t.m.info[w].weight
		if left < leastCover*p.weight {
			return i + 1
		}
	}
	return len(byRarity)
}

// splitCamel puts a space where camelCase has a border: codeReview, HTTPServer.
func splitCamel(label string) string {
	runes := []rune(label)
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) {
			acronymEnds := unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLower(runes[i-1]) || acronymEnds {
				b.WriteByte(' ')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// joined is a label written as one word, as people do with names.
func joined(label string) string {
	return strings.Map(func(r rune) rune {
		if wordRune(r) || r == '+' || r == '#' { // C++ is not C
			return r
		}
		return -1
	}, label)
}

func distinct(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
