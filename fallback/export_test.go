package fallback

// What tests outside the package look at.
var (
	DetectLanguage   = detectLanguage
	ParseLanguageTag = parseLanguageTag
	CleanText        = cleanText
	RestoreValues    = restoreValues
	TruncateText     = truncateText
	LocalizedTexts   = localizedTexts
)

// BytesPerToken is the bound on our side.
const BytesPerToken = bytesPerToken

// ChooseLanguage returns the tag a model is given, and the preamble.
func ChooseLanguage(configured, locale, prompt string) (tag, preamble string) {
	l := chooseLanguage(configured, locale, prompt)
	return l.tag, l.texts.formatPreamble(&Unmet{Reason: ReasonNoMatch})
}
