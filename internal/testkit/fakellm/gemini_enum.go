package fakellm

import "strings"

// geminiEnums renders the enums of a reply: by name, or by number for a client
// that asked for numbers.
type geminiEnums struct{ integers bool }

// of renders one value. The lists are in the order of the API's numbers.
func (e geminiEnums) of(list func() []string, name string) any {
	if !e.integers {
		return name
	}
	for i, n := range list() {
		if n == name {
			return i
		}
	}
	return 0
}

func finishReasons() []string {
	return []string{
		"FINISH_REASON_UNSPECIFIED", string(FinishStop), string(FinishMaxTokens), string(FinishSafety), string(FinishRecitation),
		string(FinishOther), string(FinishLanguage), string(FinishBlocklist), string(FinishProhibited), string(FinishSPII),
	}
}

func blockReasons() []string {
	return []string{"BLOCK_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"}
}

func harmCategories() []string {
	return []string{
		"HARM_CATEGORY_UNSPECIFIED", "HARM_CATEGORY_DEROGATORY", "HARM_CATEGORY_TOXICITY", "HARM_CATEGORY_VIOLENCE",
		"HARM_CATEGORY_SEXUAL", "HARM_CATEGORY_MEDICAL", "HARM_CATEGORY_DANGEROUS", "HARM_CATEGORY_HARASSMENT",
		"HARM_CATEGORY_HATE_SPEECH", "HARM_CATEGORY_SEXUALLY_EXPLICIT", "HARM_CATEGORY_DANGEROUS_CONTENT",
	}
}

func harmProbabilities() []string {
	return []string{"HARM_PROBABILITY_UNSPECIFIED", "NEGLIGIBLE", "LOW", "MEDIUM", "HIGH"}
}

func schemaTypes() []string {
	return []string{"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
}

// enumName reads an enum of a request: a name, or a number as the generated
// clients write it.
func enumName(list []string, v any) string {
	switch v := v.(type) {
	case string:
		return strings.ToUpper(v)
	case float64:
		if i := int(v); i >= 0 && i < len(list) {
			return list[i]
		}
	}
	return ""
}
