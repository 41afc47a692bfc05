package chinese_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/lexical/chinese"
)

func TestFirstWord(t *testing.T) {
	for text, want := range map[string]string{
		"":        "",
		"票":       "",
		"发票":      "发票",
		"发票丢了":    "发票",
		"请发票":     "",     // it does not begin with a word
		"什么时候到":   "什么时候", // the longest of several
		"什么东西":    "什么",
		"电子发票":    "", // not whole, because a registry may contain only 发票
		"发票\xff":  "发票",
		"invoice": "",
		"の発票":     "",
	} {
		if got := text[:chinese.FirstWord([]byte(text))]; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// What FirstWord finds is a word, has at least two characters, and is the longest one.
func TestFirstWord_IsLongestWord(t *testing.T) {
	characters := []string{"发", "票", "什", "么", "时", "候", "上", "个", "月", "不", "知", "道", "x"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(characters), 0, 8).Draw(t, "text"), "")
		longest := 0
		for end := range text + "." {
			if utf8.RuneCountInString(text[:end]) > 1 && chinese.IsWord(text[:end]) {
				longest = end
			}
		}
		if got := chinese.FirstWord([]byte(text)); got != longest {
			t.Fatalf("%q: got %d bytes, want %d", text, got, longest)
		}
	})
}

func TestSimplify(t *testing.T) {
	for text, want := range map[string]string{
		"":               "",
		"我的發票還沒有收到":      "我的发票还没有收到",
		"我的发票还没有收到":      "我的发票还没有收到",
		"請問訂單 A1 在哪裡？":   "请问订单 A1 在哪里？",
		"日本の発送":          "日本の発送", // Japanese forms are no traditional ones
		"ünïcode 發\xff票": "ünïcode 发\xff票",
	} {
		got := []byte(text)
		if chinese.Simplify(got); string(got) != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// The table contains no form that is itself replaced, and Simplify changes no length.
func TestSimplify_IsStable(t *testing.T) {
	for r := rune(0x4e00); r <= 0x9fff; r++ {
		once := []byte(string(r))
		chinese.Simplify(once)
		twice := append([]byte(nil), once...)
		chinese.Simplify(twice)
		if string(once) != string(twice) || !utf8.Valid(once) {
			t.Errorf("%c: got %s, then %s", r, once, twice)
		}
	}
}
