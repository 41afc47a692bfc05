package strictyaml

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// Text written by the library decodes to the same values: it quotes the same words.
func TestDecode_RoundTrip(t *testing.T) {
	text := rapid.OneOf(
		rapid.StringOf(rapid.RuneFrom(nil, unicode.L, unicode.N, unicode.P, unicode.Zs)),
		rapid.SampledFrom([]string{
			"", " ", "yes", "no", "on", "off", "y", "n", "true", "False", "null", "~", "1", "-1", "010", "0x10", "1_000", "1e3", ".5", ".inf",
			"2024-01-01", "1:30", "<<", "*a", "&a", "!a", "%a", "@a", "`a", "- a", "? a", "a: b", "a #b", "[", "{}", "'", "\"", "\\", "a\nb", "\ta", "|", ">",
		}),
	)
	key := text.Filter(func(s string) bool { return s != "<<" }) // the library does not quote this key
	limit := rapid.Custom(func(t *rapid.T) limits {
		return limits{
			MaxTokens: rapid.Int().Draw(t, "tokens"),
			Intents:   rapid.SliceOf(text).Draw(t, "intents"),
			Domains:   rapid.SliceOf(text).Draw(t, "domains"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := settings{
			Version: rapid.Int().Draw(t, "version"),
			Name:    text.Draw(t, "name"),
			On:      rapid.Bool().Draw(t, "on"),
			Ratio:   float64(rapid.IntRange(-1000, 1000).Draw(t, "ratio")) / 8,
			Count:   rapid.Uint8().Draw(t, "count"),
			Limits:  limit.Draw(t, "limits"),
			Clients: rapid.MapOfN(key, limit, 0, 4).Draw(t, "clients"),
			Words:   rapid.SliceOf(text).Draw(t, "words"),
			Lists:   rapid.MapOfN(key, rapid.SliceOf(rapid.Int()), 0, 4).Draw(t, "lists"),
			Nested:  rapid.SliceOfN(limit, 0, 4).Draw(t, "nested"),
			Plain:   text.Draw(t, "plain"),
		}
		if rapid.Bool().Draw(t, "maybe") {
			want.Maybe = new(0.5)
			want.Next = &settings{Version: 1}
		}
		data, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got settings
		if err := Decode("f.yaml", data, &got); err != nil {
			t.Fatalf("%s\n%v", data, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\ndecoded (-want +got):\n%s", data, diff)
		}
	})
}

// drawn writes a random tree as block YAML and records the path to each of its values, which are
// all different words.
type drawn struct {
	strings.Builder
	paths []Path
}

func (d *drawn) word(at Path) string {
	d.paths = append(d.paths, at)
	return fmt.Sprintf("v%d", len(d.paths)-1)
}

func (d *drawn) tree(t *rapid.T, at Path, indent string) {
	list := rapid.Bool().Draw(t, "list")
	for i := range rapid.IntRange(1, 4).Draw(t, "size") {
		var next Path
		d.WriteString(indent)
		if list {
			next = at.At(i)
			d.WriteString("-")
		} else {
			key := fmt.Sprintf("é%d", i)
			next = at.At(key)
			d.WriteString(key + ":")
		}
		if len(indent) < 8 && rapid.Bool().Draw(t, "deeper") {
			d.WriteString(rapid.SampledFrom([]string{"\n", " # why\n", "\n\n"}).Draw(t, "end"))
			d.tree(t, next, indent+"  ")
			continue
		}
		d.WriteString(" " + d.word(next) + "\n")
	}
}

// For any value in any tree, its path leads to its position.
func TestPos_FindsEveryValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d drawn
		d.tree(t, nil, "")
		file := d.String()
		doc, err := Parse("f.yaml", []byte(file))
		if err != nil {
			t.Fatalf("%s\n%v", file, err)
		}
		for i, at := range d.paths {
			word := fmt.Sprintf("v%d\n", i)
			wantLine, wantColumn := lineColumn([]byte(file), bytes.Index([]byte(file), []byte(" "+word))+1)
			if line, column := doc.Pos(at...); line != wantLine || column != wantColumn {
				t.Fatalf("%s\nPos(%v) = %d:%d, want %d:%d", file, at, line, column, wantLine, wantColumn)
			}
		}
	})
}
