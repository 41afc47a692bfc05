package strictjson

import "github.com/go-json-experiment/json/jsontext"

// IsJSON reports whether data is JSON by RFC 8259, also with duplicate names and invalid
// UTF-8, which other decoders accept.
func IsJSON(data []byte) bool {
	return jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// ReplaceInvalidUTF8 returns the document with U+FFFD in the place of invalid UTF-8 and of
// escaped surrogates that are no pair. The error is that of a document that would be
// rejected nevertheless.
func ReplaceInvalidUTF8(data []byte) ([]byte, error) {
	repaired, err := jsontext.AppendFormat(nil, data, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, translateError(err, data)
	}
	return repaired, nil
}
