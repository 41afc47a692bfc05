package lexical

import (
	"context"
	"runtime"

	"github.com/caprouter/caprouter/internal/run"
)

// trainingSet is the corpus as training input: numbered classes, numbered
// features, and the features of each sample.
type trainingSet struct {
	table    featureTable
	classes  int
	families int
	family   []int32 // by class
	samples  []trainingSample
}

// trainingSample is one text of the training set.
type trainingSample struct {
	class    int32
	words    int32   // number of leading features that are words; the rest are n-grams
	features []int32 // distinct
	fitOnly  bool    // a name or description: used to fit, never to measure
	negative bool    // a text that is not of the class (not_for)
}

// trainingText is a sample before its features are extracted.
type trainingText struct {
	text     string
	class    int32
	fitOnly  bool
	negative bool
}

// newTrainingSet extracts the features of the texts. The order of the texts
// must be fixed, because features are numbered as they occur.
func newTrainingSet(list []trainingText, group []int32, groups int) *trainingSet {
	d := &trainingSet{table: newFeatureTable(8 * len(list)), classes: len(group), family: group, families: groups, samples: make([]trainingSample, len(list))}
	type hashes struct{ words, grams []uint32 }
	read := make([]hashes, len(list))
	const chunk = 512
	chunks := (len(list) + chunk - 1) / chunk
	run.ForEach(context.Background(), runtime.GOMAXPROCS(0), chunks, func(_ context.Context, i int) {
		w := newTokenizer()
		var f featureExtractor
		var arena []uint32 // hashes of all texts of the chunk
		for k := i * chunk; k < min(len(list), (i+1)*chunk); k++ {
			text := list[k].text
			f.extractText(&w, text)
			from := len(arena)
			arena = append(append(arena, f.words...), f.grams...)
			border := from + len(f.words)
			read[k] = hashes{arena[from:border:border], arena[border:len(arena):len(arena)]}
		}
	})
	var seen []int32 // by feature: 1 + the last sample that contains it
	arena := make([]int32, 0, 64*len(list))
	for i, u := range list {
		from, words := len(arena), 0
		for block, hashed := range [...][]uint32{read[i].words, read[i].grams} {
			for _, h := range hashed {
				id := d.table.insert(h)
				if int(id) == len(seen) {
					seen = append(seen, 0)
				}
				if seen[id] != int32(i)+1 {
					seen[id] = int32(i) + 1
					arena = append(arena, id)
				}
			}
			if block == 0 {
				words = len(arena) - from
			}
		}
		d.samples[i] = trainingSample{
			class: u.class, fitOnly: u.fitOnly, negative: u.negative,
			words: int32(words), features: arena[from:len(arena):len(arena)],
		}
	}
	return d
}
