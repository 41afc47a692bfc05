package visibility

import (
	"slices"
	"strconv"

	"github.com/caprouter/caprouter/contract"
)

// subtaskTitles replaces the titles of the subtasks of one request. The zero
// value keeps them.
type subtaskTitles struct {
	masked  bool
	byTitle map[string]string
}

func (t subtaskTitles) replace(title string) string {
	if !t.masked || title == "" {
		return title
	}
	if replacement, ok := t.byTitle[title]; ok {
		return replacement
	}
	return hiddenTitle
}

func (f *Filter) decisionTitles(d *contract.Decision) subtaskTitles {
	if d == nil {
		return subtaskTitles{}
	}
	return f.maskTitles(&d.Classification)
}

// maskTitles returns the replacements for the titles of the subtasks. A title written
// by a model may contain anything, so it is replaced by the visible labels of its
// subtask. A title made of an intent is replaced if the intent is hidden. Any
// other title is a part of the caller's own prompt and stays.
func (f *Filter) maskTitles(c *contract.Classification) subtaskTitles {
	fromPrompt := func(sub contract.Subtask) bool { return sub.Title != sub.Intent } // if not written by a model
	byModel := c.Source == contract.SourceLLM || c.Source == contract.SourceCache
	if len(c.Subtasks) == 0 || !byModel && !slices.ContainsFunc(c.Subtasks, func(sub contract.Subtask) bool { return !fromPrompt(sub) }) {
		return subtaskTitles{}
	}
	byTitle := make(map[string]string, len(c.Subtasks))
	for i, sub := range c.Subtasks {
		intent, domains := sub.Intent, sub.Domains
		if intent == "" {
			intent = c.Intent
		}
		if len(domains) == 0 {
			domains = c.Domains
		}
		title := hiddenTitle + " " + strconv.Itoa(i+1)
		switch intent = f.maskIntent(intent); {
		case !byModel && fromPrompt(sub):
			title = sub.Title
		case intent != contract.Unknown:
			title = contract.OptionLabel(intent, f.maskDomains(domains))
		}
		if _, known := byTitle[sub.Title]; !known {
			byTitle[sub.Title] = title
		}
	}
	return subtaskTitles{masked: true, byTitle: byTitle}
}
