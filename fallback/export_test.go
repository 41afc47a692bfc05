package fallback

// Exported for the external tests.
var (
	ParseLanguageTag = parseLanguageTag
	LocalizedTexts   = localizedTexts
	RefusalTexts     = refusalTexts
)

// ChooseLanguage returns the language tag for the model, and the preamble.
func ChooseLanguage(configured, locale, prompt string) (tag, preamble string) {
	l := chooseLanguage(&LanguageSource{Configured: configured, Locale: locale, Prompt: prompt})
	return l.tag, l.texts.formatPreamble(&Unmet{Reason: ReasonNoMatch})
}
