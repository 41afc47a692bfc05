// Package ranking orders agents and tools that have only a name and a description, by their
// similarity to a text.
package ranking

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/synonyms"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// Document is an agent or a tool that has only a name and a description.
type Document struct{ Name, Description string }

// Result is the name of a Document and its score. Scores are comparable
// within one ranking only.
type Result struct {
	Name  string
	Score float64
}

// Ranker orders agents or tools by the similarity of their names and
// descriptions to a text. It is Okapi BM25 (Robertson and Walker 1994) over stems and, with a smaller
// weight, over the character n-grams of the words, so that a related word
// counts a little ("triangular" for "triangle"). A word that no document contains
// counts as the synonym or translation that one does. A name is split into words
// (get_weather.byCity), which weigh more than those of the description. A
// Ranker is immutable and safe for concurrent use.
type Ranker struct {
	names    []string
	terms    map[uint32]int32 // hash → number
	postings [][]termPosting  // by term
	idf      []float64        // by term
	stops    map[string]bool
	hints    map[string]string
	synonyms synonyms.Index      // of words of the documents
	actions  map[string][]string // by stem: the words of the documents that mean the same for tools
}

type termPosting struct {
	doc    int32
	weight float64 // saturated term frequency
}

// Usual constants of BM25, and weights that this ranker adds.
const (
	bm25K1         = 2.0
	bm25B          = 0.6
	hintWeight     = 0.5  // weight of a hint
	synonymWeight  = 0.5  // weight of a synonym of a word that no document has, also of an action
	rankStopWeight = 0.15 // weight of a stop word
	nameWeight     = 2.0  // a word of the name counts as often in the description
	gramWeight     = 0.05
)

// New indexes the documents. Their order matters only if two have the
// same name.
func New(docs []Document) *Ranker {
	r := &Ranker{terms: map[uint32]int32{}, stops: token.StopWords(), hints: parseHints(), actions: map[string][]string{}}
	ordered := slices.Clone(docs)
	slices.SortStableFunc(ordered, func(a, b Document) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Description, b.Description))
	})
	counts := make([]map[int32]float64, len(ordered))
	lengths := make([]float64, len(ordered))
	total := 0.0
	words := map[string]int{}
	read := feature.Terms{Tokens: token.NewScanner(), Stops: r.stops, StopWeight: rankStopWeight}
	for i, d := range ordered {
		r.names = append(r.names, d.Name)
		counts[i] = map[int32]float64{}
		take := func(times float64) func(uint32, bool, float64) {
			return func(hash uint32, isWord bool, _ float64) {
				n, ok := r.terms[hash]
				if !ok {
					n = int32(len(r.postings))
					r.terms[hash] = n
					r.postings = append(r.postings, nil)
				}
				counts[i][n] += times
				if isWord {
					lengths[i] += times
					words[string(read.Tokens.Word)]++
				}
			}
		}
		read.ForEach(token.SplitCamel(d.Name), take(nameWeight))
		read.ForEach(token.SplitCamel(d.Description), take(1))
		total += lengths[i]
	}
	r.synonyms, _ = synonyms.New(words, words)
	r.addActions(words)
	mean := max(total/float64(max(len(ordered), 1)), 1)
	for i, of := range counts {
		slack := bm25K1 * (1 - bm25B + bm25B*lengths[i]/mean)
		for term, count := range of {
			r.postings[term] = append(r.postings[term], termPosting{int32(i), count * (bm25K1 + 1) / (count + slack)})
		}
	}
	r.idf = make([]float64, len(r.postings))
	n := float64(len(ordered))
	for term, posts := range r.postings {
		has := float64(len(posts))
		r.idf[term] = math.Log1p((n - has + 0.5) / (has + 0.5))
	}
	return r
}

// hints map a word to the topics it implies, in English, Portuguese and
// Spanish: "when" asks for a date, and 100 euros are a currency. A line is the
// word, a colon and the topics.
const hints = `
when: date time
quando: date time
cuando: date time
today: date
tomorrow: date
yesterday: date
where: location place
onde: location place
donde: location place
who: person
quem: person
quien: person
euro: currency
euros: currency
eur: currency
dollar: currency
dollars: currency
usd: currency
gbp: currency
yen: currency
peso: currency
pesos: currency
reais: currency
`

// parseHints returns the topics by word.
func parseHints() map[string]string {
	to := map[string]string{}
	for line := range strings.Lines(hints) {
		if word, about, ok := strings.Cut(line, ":"); ok {
			to[word] = about
		}
	}
	return to
}

// actions are words of what tools do and of what they do it with, one meaning a line, in English,
// Portuguese and Spanish. They are not in lexicon.Synonyms, because for agents they are general
// words with several meanings: a tool reads a file, and an agent reads a contract. Inflections with
// the same stem are left out.
const actions = `
read ler leia leio lendo leer lee lea leyendo leitura lectura
write save gravar grave gravo gravando escrever escreva escrevendo escribir escribe escriba escribiendo guardar salvar armazenar almacenar store
list show listar mostrar muestra muestre exibir exiba enumerar
delete remove erase apagar apague excluir exclua excluya eliminar elimine borrar borre remover deletar suprimir suprima
search find buscar busque procurar procure pesquisar pesquise encontrar encuentra encuentre localizar
get fetch retrieve obter obtenha obtener obtenga recuperar
move mover mova mueve mueva
rename renomear renombrar renombra
copy duplicate copiar copia copie duplicar
edit update modify change editar edite modificar modifique alterar atualizar actualizar actualice
run execute executar ejecutar ejecuta ejecute
query consultar consulta
reply answer responder responda responde
forward encaminhar reenviar
attach anexar adjuntar adjunta
upload subir carregar cargar
download baixar descargar descarga descarregar
count contar conte cuenta
compress comprimir compactar
file arquivo ficheiro archivo fichero
row record linha fila registro
column coluna columna
node nodo
entity entidade entidad
relation relacao relacion
graph grafo
`

// addActions adds the words of the documents, with their counts, that mean the same as others.
func (r *Ranker) addActions(words map[string]int) {
	byStem := map[string]string{}
	for w := range words {
		if stem := token.StemOf(w); byStem[stem] == "" || w < byStem[stem] {
			byStem[stem] = w
		}
	}
	for line := range strings.Lines(actions) {
		var meant []string
		for word := range strings.FieldsSeq(line) {
			if w := byStem[token.StemOf(word)]; w != "" && !slices.Contains(meant, w) {
				meant = append(meant, w)
			}
		}
		for word := range strings.FieldsSeq(line) {
			r.actions[token.StemOf(word)] = meant
		}
	}
}

// Rank returns the documents that share a term with the text, best first, and
// by name if the scores are equal.
func (r *Ranker) Rank(text string) []Result {
	scores := make([]float64, len(r.names))
	seen := map[int32]bool{}
	read := feature.Terms{Tokens: token.NewScanner(), Stops: r.stops, StopWeight: rankStopWeight}
	score := func(hash uint32, isWord bool, share float64) {
		term, ok := r.terms[hash]
		if !ok || seen[term] {
			return
		}
		seen[term] = true
		weight := r.idf[term] * share
		if !isWord {
			weight *= gramWeight
		}
		for _, p := range r.postings[term] {
			scores[p.doc] += weight * p.weight
		}
	}
	var implied []string
	var meant [][]string
	read.ForEach(token.SplitCamel(text), func(hash uint32, isWord bool, share float64) {
		if to := r.hints[string(read.Tokens.Word)]; isWord && to != "" {
			implied = append(implied, to)
		}
		if _, known := r.terms[hash]; isWord && !known && share == 1 {
			stem := token.StemOf(string(read.Tokens.Word))
			if words := r.actions[stem]; len(words) > 0 {
				meant = append(meant, words)
			} else if word := r.synonyms[stem]; word != "" {
				meant = append(meant, []string{word})
			}
		}
		score(hash, isWord, share)
	})
	for _, words := range meant {
		best := make([]float64, len(scores)) // a document with several of the words counts once
		for _, word := range words {
			read.ForEach(word, func(hash uint32, isWord bool, share float64) {
				term, ok := r.terms[hash]
				if !ok || !isWord || seen[term] {
					return
				}
				seen[term] = true
				for _, p := range r.postings[term] {
					best[p.doc] = max(best[p.doc], r.idf[term]*synonymWeight*share*p.weight)
				}
			})
		}
		for i, score := range best {
			scores[i] += score
		}
	}
	for _, to := range implied {
		read.ForEach(to, func(hash uint32, isWord bool, share float64) {
			if isWord {
				score(hash, true, hintWeight*share)
			}
		})
	}
	var list []Result
	for i, score := range scores {
		if score > 0 {
			list = append(list, Result{r.names[i], score})
		}
	}
	slices.SortStableFunc(list, func(a, b Result) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	return list
}
