package fallback

// What tests outside the package look at.
var (
	Detect      = detect
	LanguageTag = languageTag
	Legible     = legible
	Restored    = restored
	Within      = within
	Wordings    = wordings
)

// BytesPerToken is the bound on our side.
const BytesPerToken = bytesPerToken

// LanguageOf returns the tag a model is given, and the preamble.
func LanguageOf(configured, locale, prompt string) (tag, preamble string) {
	l := languageOf(configured, locale, prompt)
	return l.tag, l.words.preamble(&Unmet{Reason: ReasonNoMatch})
}
