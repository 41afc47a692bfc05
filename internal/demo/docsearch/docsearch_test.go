package docsearch

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Section
	}{
		{"empty", "", nil},
		{"no heading", "One.\nStill one.\n\nTwo.", []Section{
			{File: "a.md", Heading: "a.md", Blocks: []string{"One. Still one.", "Two."}},
		}},
		{"nested headings", "# A\nText.\n## B\nMore.\n### C\nDeep.\n## D\nLast.", []Section{
			{File: "a.md", Heading: "A", Blocks: []string{"Text."}},
			{File: "a.md", Heading: "B", Path: []string{"A"}, Blocks: []string{"More."}},
			{File: "a.md", Heading: "C", Path: []string{"A", "B"}, Blocks: []string{"Deep."}},
			{File: "a.md", Heading: "D", Path: []string{"A"}, Blocks: []string{"Last."}},
		}},
		{"a heading without text is only a path", "# A\n\n## `B` **now**\nText.", []Section{
			{File: "a.md", Heading: "B now", Path: []string{"A"}, Blocks: []string{"Text."}},
		}},
		{"a skipped level", "# A\n### C\nText.", []Section{
			{File: "a.md", Heading: "C", Path: []string{"A"}, Blocks: []string{"Text."}},
		}},
		{"code is one block, headings in it are code", "# A\nBefore:\n```yaml\n# not a heading\n  a: 1\n\nb: 2\n```\nAfter.", []Section{
			{File: "a.md", Heading: "A", Blocks: []string{"Before:", "# not a heading\n  a: 1\n\nb: 2", "After."}},
		}},
		{"items and rows stand alone", "# A\n- one\n  goes on\n- two\n1. three\n\n| x | y |\n|---|:-:|\n| 1 | 2 |", []Section{
			{File: "a.md", Heading: "A", Blocks: []string{"- one goes on", "- two", "1. three", "x · y", "1 · 2"}},
		}},
		{"an open fence ends with the file", "# A\n~~~\ncode", []Section{
			{File: "a.md", Heading: "A", Blocks: []string{"code"}},
		}},
		{"not headings", "#hash\n####### seven\n#", []Section{
			{File: "a.md", Heading: "a.md", Blocks: []string{"#hash ####### seven #"}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Split("a.md", tt.text)); diff != "" {
				t.Errorf("sections (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWords(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"case and marks", "Tie-Breaks, by `id`!", "tie break id"},
		{"names with underscores", "confidence_threshold", "confidenc threshold"},
		{"verb forms meet", "route routes routed routing", "rout rout rout rout"},
		{"plurals meet", "policy policies agent agents", "policy policy agent agent"},
		{"short words stay", "keys needs using is", "key using"},
		{"endings that are no plural", "class status", "class status"},
		{"noise goes", "What do the docs say about reloads?", "reload"},
		{"any script", "Größe 名前 42", "größ 名前 42"},
		{"nothing", " ?! ", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, want := words(tt.text), strings.Fields(tt.want); !slices.Equal(got, want) {
				t.Errorf("words(%q) = %q, want %q", tt.text, got, want)
			}
		})
	}
}

// library is a small collection with known answers.
func library() *Index {
	var all []Section
	all = append(all, Split("cooking.md", `# Cooking
## Soup
Boil water and add salt. Soup is served hot.

Leftover soup keeps for two days in the cold.
## Bread
Mix flour, water and yeast. Bake the bread for an hour.
`)...)
	return New(append(all, Split("garden.md", `# Garden
## Tomatoes
Tomatoes want sun and water. Water them in the morning:

water once a day
## Herbs
Salt kills herbs. Mint wants shade.
`)...))
}

func TestSearch(t *testing.T) {
	tests := []struct {
		name, question string
		want           []string // "file heading", best first
	}{
		{"a word of one section", "yeast", []string{"cooking.md Bread"}},
		{"the heading counts most", "water for tomatoes", []string{"garden.md Tomatoes", "cooking.md Bread", "cooking.md Soup"}},
		{"a form of the word", "baking", []string{"cooking.md Bread"}},
		{"the file's own heading helps", "garden salt", []string{"garden.md Herbs", "garden.md Tomatoes", "cooking.md Soup"}},
		{"no word in common", "carburettor", nil},
		{"noise only", "what is the documentation about", nil},
		{"empty", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, h := range library().Search(tt.question, 3) {
				got = append(got, h.File+" "+h.Heading)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSearchLimits(t *testing.T) {
	x := library()
	for _, k := range []int{-1, 0, 1, 2, 100} {
		got := len(x.Search("water", k))
		if want := max(0, min(k, 3)); got != want {
			t.Errorf("Search(water, %d) returns %d hits, want %d", k, got, want)
		}
	}
	if got := New(nil).Search("water", 3); len(got) != 0 {
		t.Errorf("an empty index returns %v", got)
	}
}

func TestSnippet(t *testing.T) {
	tests := []struct {
		name, question, want string
	}{
		{"the paragraph that fits", "how long does soup keep", "Leftover soup keeps for two days in the cold."},
		{"the section when its heading says it", "soup", "Boil water and add salt. Soup is served hot.\nLeftover soup keeps for two days in the cold."},
		{"an announcement brings what it announces", "water tomatoes in the morning", "Tomatoes want sun and water. Water them in the morning:\nwater once a day"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			hits := library().Search(tt.question, 1)
			if len(hits) != 1 || hits[0].Snippet != tt.want {
				t.Errorf("hits %+v, want the snippet %q", hits, tt.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		name, s string
		n       int
		want    string
	}{
		{"short", "abc", 5, "abc"},
		{"at a space", "one two three", 10, "one two…"},
		{"without a space", "abcdefghij", 5, "abcd…"},
		{"marks before the cut go", "one two, three", 11, "one two…"},
		{"in characters", "名名名名名名", 5, "名名名名…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := cut(tt.s, tt.n); got != tt.want {
				t.Errorf("cut(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
			}
		})
	}
}

func TestAnchor(t *testing.T) {
	for heading, want := range map[string]string{
		"Score": "score", "POST /api/v1/route": "post-apiv1route", "Tie-breaks, in order": "tie-breaks-in-order", "data_dir": "data_dir",
	} {
		if got := anchor(heading); got != want {
			t.Errorf("anchor(%q) = %q, want %q", heading, got, want)
		}
	}
}

func TestLoad(t *testing.T) {
	got, err := Load(fstest.MapFS{
		"b.md":     {Data: []byte("# B\nb")},
		"a.md":     {Data: []byte("# A\na")},
		"notes.go": {Data: []byte("package notes")},
		"sub/c.md": {Data: []byte("# C\nc")},
	})
	want := []Section{{File: "a.md", Heading: "A", Blocks: []string{"a"}}, {File: "b.md", Heading: "B", Blocks: []string{"b"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Load: error %v, sections (-want +got):\n%s", err, diff)
	}
}

// unreadable lists a file that cannot be opened.
type unreadable struct{ fstest.MapFS }

func (u unreadable) ReadFile(name string) ([]byte, error) {
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrPermission}
}

func TestLoadReportsWhatCannotBeRead(t *testing.T) {
	_, err := Load(unreadable{fstest.MapFS{"a.md": {Data: []byte("x")}}})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "a.md") {
		t.Errorf("error %v, want one that names a.md and wraps fs.ErrPermission", err)
	}
}

// Any text is cut into sections that hold all of its words, and a search over
// it gives hits in falling order.
func TestSplitKeepsEveryWord(t *testing.T) {
	lines := []string{"# One", "## Two two", "### Three", "text here", "more text", "", "```", "| a | b |", "|---|---|", "- item", "1. first", "~~~", "    indented", "# "}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 30).Draw(t, "lines"), "\n")
		sections := Split("x.md", text)
		for _, s := range sections {
			if len(s.Blocks) == 0 || s.Heading == "" && !strings.Contains(text, "# \n") && !strings.HasSuffix(text, "# ") {
				t.Fatalf("section %+v: want a heading and text", s)
			}
		}
		have := strings.Join(func() (all []string) {
			for _, s := range sections {
				all = append(all, s.Blocks...)
			}
			return all
		}(), "\n")
		for _, w := range []string{"here", "more", "item", "first", "indented"} {
			if got, want := strings.Count(have, w), strings.Count(text, w); got != want {
				t.Fatalf("%q occurs %d times in the sections, want %d", w, got, want)
			}
		}
		hits := New(sections).Search("text two item", 10)
		if !slices.IsSortedFunc(hits, func(a, b Hit) int { return int(1000*b.Score) - int(1000*a.Score) }) {
			t.Fatalf("hits are not in falling order: %+v", hits)
		}
	})
}

func FuzzSearch(f *testing.F) {
	f.Add("# A\n```\nb\n```\n| c |\n", "b c")
	f.Add("", "")
	f.Add("#\xff\n\x00", "\xff")
	f.Fuzz(func(t *testing.T, text, question string) {
		for _, h := range New(Split("a.md", text)).Search(question, 3) {
			if h.Score < 0 || utf8.RuneCountInString(h.Snippet) > maxSnippet {
				t.Errorf("hit %+v: want a score of at least 0 and at most %d characters", h, maxSnippet)
			}
		}
	})
}
