package strictyaml

import "testing"

// FuzzDecode checks that no input panics or blocks, that every error is Errors with positions, and
// that decoding the same bytes twice gives the same result.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		placed,
		"version: 1\nname: é\non: true\nratio: 0.65\nmaybe: ~\nnext: {version: 2, words: all}\n",
		"nested:\n- max_tokens: 2\n- domains:\n  - y\nlists: {a: [1, 2]}\n",
		"name: &a x\nplain: *a\n", "limits:\n  <<: {max_tokens: 1}\n", "name: !!binary aGk=\n", "words: &a [*a]\n",
		"version: 1\n---\nversion: 2\n", "%YAML 1.2\n---\nversion: 1\n", "limits:\n\tmax_tokens: 1\n",
		"? [a]\n: b\n", "name: |2-\n   x\n", "name: >\n\n\n x\n#c\n", "\ufeff---\r\nversion: 1\r\n...\r\n",
		"a\x00:\x00", "[[[[", "{a: {b: {c: [", "- - - - -", "\"\\", "'", "#", "---", "...", "? ", ": ", "!", "&", "*", "|", ">",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decode := func() (settings, error) {
			var v settings
			err := Decode("f.yaml", data, &v, ScalarOrList[words]())
			return v, err
		}
		_, first := decode()
		_, second := decode()
		if (first == nil) != (second == nil) || first != nil && first.Error() != second.Error() {
			t.Fatalf("decoded twice: got %v, then %v", first, second)
		}
		if first == nil {
			return
		}
		list, ok := first.(Errors)
		if !ok {
			t.Fatalf("got error %T %v, want Errors", first, first)
		}
		for i, e := range list {
			if i < MaxErrors && (e.Line < 1 || e.Column < 1) {
				t.Fatalf("got an error without a place: %v", e)
			}
			if len(e.Detail) > 1024 {
				t.Fatalf("got an error of %d bytes: %.80s…", len(e.Detail), e.Detail)
			}
		}
	})
}
