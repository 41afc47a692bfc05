package lexical

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/testkit"
)

// memoryStorage is a Storage in memory.
type memoryStorage struct {
	data   map[string][]byte
	loaded int
}

func (s *memoryStorage) Load(key string) []byte {
	if s.data[key] != nil {
		s.loaded++
	}
	return s.data[key]
}

func (s *memoryStorage) Store(key string, encode func() []byte) { s.data[key] = encode() }

func trainWith(t *testing.T, c Corpus, s Storage) *Model {
	t.Helper()
	m, err := TrainStored(t.Context(), c, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// storedCorpora have examples, names only, one agent for all intents, and no intent.
func storedCorpora() map[string]Corpus {
	named := trainedCorpus()
	for i := range named.Intents {
		named.Intents[i].Examples = nil
	}
	described := trainedCorpus()
	for i := range described.Intents {
		d := &described.Intents[i]
		d.Agents, d.Keywords = []string{"all"}, []string{"budget", d.Name[:4]}
		d.Descriptions, d.NotFor = []string{"handles " + d.Name}, []string{"write a poem"}
	}
	described.Aliases = map[string][]string{"finance": {"money"}}
	return map[string]Corpus{"examples": trainedCorpus(), "names": named, "descriptions": described, "empty": {}}
}

// A loaded model makes the same predictions as the trained one.
func TestTrainStored_LoadsTrainedModel(t *testing.T) {
	for name, corpus := range storedCorpora() {
		t.Run(name, func(t *testing.T) {
			s := &memoryStorage{data: map[string][]byte{}}
			trained, loaded := trainWith(t, corpus, s), trainWith(t, corpus, s)
			if s.loaded != 1 || len(s.data) != 1 {
				t.Fatalf("got %d of %d models loaded, want 1 of 1", s.loaded, len(s.data))
			}
			if diff := cmp.Diff(trained.Report(), loaded.Report(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("report (-trained +loaded):\n%s", diff)
			}
			if trained.RejectThreshold() != loaded.RejectThreshold() || trained.AcceptThreshold() != loaded.AcceptThreshold() {
				t.Error("got different thresholds")
			}
			var words []string
			for _, d := range trainedCorpus().Intents {
				for _, text := range append([]string{d.Name}, d.Examples...) {
					words = append(words, strings.Fields(text)...)
				}
			}
			words = append(words, "budget", "money", "poem", "zebra", "finance", "pasword", "の")
			rapid.Check(t, func(t *rapid.T) {
				text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 12).Draw(t, "words"), " ")
				if diff := cmp.Diff(trained.Classify(text), loaded.Classify(text)); diff != "" {
					t.Errorf("%q (-trained +loaded):\n%s", text, diff)
				}
			})
		})
	}
}

// Any change of the corpus changes the key.
func TestTrainStored_TrainsAnotherCorpus(t *testing.T) {
	s := &memoryStorage{data: map[string][]byte{}}
	changes := []func(*Corpus){
		func(*Corpus) {},
		func(c *Corpus) { c.Intents[0].Examples = c.Intents[0].Examples[1:] },
		func(c *Corpus) { c.Intents[0].Keywords = []string{"wire"} },
		func(c *Corpus) { c.Intents[0].Agents = []string{"other"} },
		func(c *Corpus) { c.Intents[0].Descriptions = []string{"wire"} },
		func(c *Corpus) { c.Intents[0].NotFor = []string{"wire"} },
		func(c *Corpus) { c.Intents[0].Domains = []string{"office"} },
		func(c *Corpus) { c.Domains = append(c.Domains, "warehouse") },
		func(c *Corpus) { c.Aliases = map[string][]string{"office": {"bureau"}} },
	}
	for i, change := range changes {
		c := trainedCorpus()
		for k := range c.Intents {
			c.Intents[k].Examples = c.Intents[k].Examples[:3]
		}
		change(&c)
		trainWith(t, c, s)
		if len(s.data) != i+1 || s.loaded != 0 {
			t.Fatalf("change %d: got %d models stored and %d loaded, want %d and 0", i, len(s.data), s.loaded, i+1)
		}
	}
}

// Data of another format, or of a corpus of another size, is rejected.
func TestDecodeLearned_RejectsOtherData(t *testing.T) {
	s := &memoryStorage{data: map[string][]byte{}}
	intents := len(trainWith(t, trainedCorpus(), s).intents)
	for _, data := range s.data {
		if decodeLearned(data, intents) == nil {
			t.Error("got the stored model rejected")
		}
		for _, other := range [][]byte{nil, {}, []byte("{}"), data[:len(data)/2], slices.Concat([]byte{1}, data)} {
			if decodeLearned(other, intents) != nil {
				t.Errorf("got %d bytes accepted", len(other))
			}
		}
		if decodeLearned(data, intents+1) != nil {
			t.Error("got the model of fewer intents accepted")
		}
	}
}

// If the hash changes because the training has changed, increase trainingVersion, so that models
// stored by earlier versions are not used.
func TestTrainingVersion_ChangesWithTraining(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("floating-point results depend on the processor")
	}
	want := map[int]string{11: "62fdac6d51794914fec19dfb6c7a1e664ac7f4cc6a4c800ef77c6aa705098ca0"}
	h := sha256.New()
	corpora := storedCorpora()
	for _, name := range []string{"descriptions", "examples", "names"} {
		s := &memoryStorage{data: map[string][]byte{}}
		m := trainWith(t, corpora[name], s)
		for _, data := range s.data {
			fmt.Fprintf(h, "%v\n", decodeLearned(data, len(m.intents)).stored())
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want[trainingVersion] {
		t.Errorf("version %d of the training: got hash %s, want %s", trainingVersion, got, want[trainingVersion])
	}
}

// In a large corpus only candidates are scored. The predictions are the same as with all classes.
func TestChooseCandidates_PredictsLikeAllClasses(t *testing.T) {
	testkit.SkipWithRace(t)
	words := func(i int) string { return fmt.Sprintf("w%dx y%dz", i%41, i%37) }
	for name, agents := range map[string]int{"families": 3, "own families": 1} {
		t.Run(name, func(t *testing.T) {
			var corpus Corpus
			for i := range minSparseClasses + 8 {
				corpus.Intents = append(corpus.Intents, IntentDoc{
					Name: fmt.Sprintf("do%d_it", i), Agents: []string{fmt.Sprint("agent", i/agents)}, Keywords: []string{fmt.Sprintf("key%d", i/agents)},
					Examples: []string{"please run " + words(i), "handle " + words(i+1) + " requests"},
				})
			}
			s := &memoryStorage{data: map[string][]byte{}}
			few, all := trainWith(t, corpus, s), trainWith(t, corpus, s)
			if few.statistical.linear.order == nil {
				t.Fatal("got all classes scored, want candidates only")
			}
			all.statistical.linear.order = nil
			near := cmpopts.EquateApprox(0, 2e-4)
			// Their sums round differently, which is no tie.
			for _, text := range []string{"do487 w10x y29z", "do97 w18x y22z", "do0 w1x y24z"} {
				if diff := cmp.Diff(all.Classify(text), few.Classify(text), near); diff != "" {
					t.Errorf("%q (-all +candidates):\n%s", text, diff)
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				i := rapid.IntRange(0, 700)
				forms := []string{"run WORDS", "please run WORDS", "handle WORDS", "doNUMBER WORDS", "keyNUMBER", "WORDS and keyNUMBER", "requests", "zebra"}
				text := strings.NewReplacer("WORDS", words(i.Draw(t, "words")), "NUMBER", strconv.Itoa(i.Draw(t, "number"))).
					Replace(rapid.SampledFrom(forms).Draw(t, "form"))
				if diff := cmp.Diff(all.Classify(text), few.Classify(text), near); diff != "" {
					t.Errorf("%q (-all +candidates):\n%s", text, diff)
				}
			})
		})
	}
}
