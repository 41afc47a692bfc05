package golden

import (
	"errors"
	"strings"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

// ReadYAML reads `cases: […]`, the format that can say everything.
func ReadYAML(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	doc, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var content struct {
		Cases []Case `yaml:"cases"`
	}
	// What Decode finds is told together with what the checks find.
	_ = doc.Decode(&content, strictyaml.ScalarOrList[ScriptedReplies]())
	if len(content.Cases) == 0 {
		doc.Errorf(strictyaml.At("cases"), "has no cases: write `cases:` and a list of them")
	}
	for i := range content.Cases {
		c := &content.Cases[i]
		c.File = file
		c.Line, _ = doc.Pos("cases", i)
		checker{names, func(detail string, steps ...any) {
			doc.Errorf(strictyaml.At("cases", i).At(steps...), "%s", detail)
		}}.check(c)
	}
	if err := doc.Err(); err != nil {
		return nil, namingTheKey(err, len(content.Cases))
	}
	return content.Cases, nil
}

// namingTheKey says which mapping the file must be. Where no case was found, the
// only thing that can be no mapping is the whole of it.
func namingTheKey(err error, cases int) error {
	const general = "must be a mapping (key: value)"
	wrong, ok := errors.AsType[strictyaml.Errors](err)
	if !ok || cases > 0 || len(wrong) == 0 || !strings.HasPrefix(wrong[0].Detail, general) {
		return err
	}
	wrong[0].Detail = "must be a mapping with the key cases: write `cases:` above the list"
	return wrong
}
