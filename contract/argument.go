package contract

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Convert returns the text as a JSON value of the type of the argument.
func (a *Argument) Convert(text string) (json.RawMessage, error) {
	var value any = text
	var err error
	switch a.Type {
	case "number":
		value, err = strconv.ParseFloat(text, 64)
	case "integer":
		value, err = strconv.ParseInt(text, 10, 64)
	case "boolean":
		value, err = strconv.ParseBool(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%.40q is no %s", text, a.Type)
	}
	raw, err := json.Marshal(value)
	if err != nil { // NaN and infinity are numbers for strconv only
		return nil, fmt.Errorf("%.40q is no %s", text, a.Type)
	}
	return raw, nil
}
