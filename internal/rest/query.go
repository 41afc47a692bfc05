package rest

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Limits of parameters.
const (
	maxPageSize  = 1000
	maxCursorLen = 512
	maxIDLen     = 64
	maxLabelLen  = 64  // characters
	maxNameLen   = 256 // of a subject or a tool
)

// queryParser parses the query parameters of a GET request. Its methods return
// zero values for parameters that are absent or invalid; err reports all
// mistakes together.
type queryParser struct {
	values  url.Values
	details []contract.ErrorDetail
}

// parseQuery accepts the named parameters, each at most once, and no others.
func parseQuery(raw string, names ...string) *queryParser {
	return parseQueryLists(raw, nil, names...)
}

// parseQueryLists is parseQuery with some parameters that may be given several times.
func parseQueryLists(raw string, lists []string, names ...string) *queryParser {
	values, err := url.ParseQuery(raw)
	q := &queryParser{values: values}
	if err != nil {
		q.addError("", "the query of the URL is not well formed")
		return q
	}
	var unknown []string
	for name, given := range values {
		switch {
		case !slices.Contains(names, name):
			unknown = append(unknown, name)
		case len(given) > 1 && !slices.Contains(lists, name):
			q.addError(name, "is given more than once")
		}
	}
	if len(unknown) > 0 { // report one of them, so that the response stays short
		q.addError(slices.Min(unknown), "unknown parameter; there are "+strings.Join(names, ", "))
	}
	return q
}

func (q *queryParser) addError(name, detail string) {
	pointer := ""
	if name != "" {
		pointer = strictjson.AppendPointer("", name)
	}
	q.details = append(q.details, contract.ErrorDetail{Pointer: pointer, Detail: detail})
}

// param returns a parameter if it is valid.
func (q *queryParser) param(name string, valid func(string) bool, detail string) string {
	value := q.values.Get(name)
	if value == "" && !q.values.Has(name) {
		return ""
	}
	if !valid(value) {
		q.addError(name, detail)
		return ""
	}
	return value
}

func (q *queryParser) enumParam(name string, values ...string) string {
	return q.param(name, func(s string) bool { return slices.Contains(values, s) }, "must be one of: "+strings.Join(values, ", "))
}

// enumListParam returns the values of a parameter that may be given several times.
func (q *queryParser) enumListParam(name string, values ...string) (list []string) {
	for _, value := range q.values[name] {
		switch {
		case !slices.Contains(values, value):
			q.addError(name, "must be one of: "+strings.Join(values, ", "))
			return nil
		case slices.Contains(list, value):
			q.addError(name, value+" is given twice")
			return nil
		}
		list = append(list, value)
	}
	return list
}

// firstYear and lastYear bound times: nothing was stored before, and no correct
// clock is later.
const (
	firstYear = 1970
	lastYear  = 9999
)

func (q *queryParser) timeParam(name string) time.Time {
	value := q.values.Get(name)
	if !q.values.Has(name) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, value)
	switch year := at.UTC().Year(); {
	case err != nil:
		q.addError(name, "must be a time like 2026-01-02T15:04:05Z (RFC 3339); a + is written %2B")
	case year < firstYear || year > lastYear:
		q.addError(name, fmt.Sprintf("must be a time of the years %d to %d", firstYear, lastYear))
	default:
		return at
	}
	return time.Time{}
}

// limitParam returns a number from 1 to most, or 0 if the parameter is absent.
func (q *queryParser) limitParam(most int) int {
	n := 0
	q.param("limit", func(s string) bool {
		var err error
		n, err = strconv.Atoi(s)
		return err == nil && isDigits(s) && n >= 1 && n <= most
	}, fmt.Sprintf("must be a whole number from 1 to %d", most))
	return n
}

// confidenceParam returns a number above 0 and up to 1, or 0 if the parameter is
// absent.
func (q *queryParser) confidenceParam(name string) float64 {
	var number float64
	q.param(name, func(s string) bool {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.ContainsAny(s, "xX") || !(n > 0 && n <= 1) { // ParseFloat accepts hexadecimal numbers
			return false
		}
		number = n
		return true
	}, "must be a number above 0 and up to 1, e.g. 0.7")
	return number
}

func (q *queryParser) cursorParam() string {
	return q.param("cursor", func(s string) bool { return isPrintable(s, maxCursorLen) }, "is not a cursor of an earlier page")
}

func (q *queryParser) err() error {
	slices.SortFunc(q.details, func(a, b contract.ErrorDetail) int { return strings.Compare(a.Pointer, b.Pointer) })
	return invalidRequest(q.details)
}

// isLabel reports whether s can be the name of an intent.
func isLabel(s string) bool {
	n := utf8.RuneCountInString(s)
	return utf8.ValidString(s) && n > 0 && n <= maxLabelLen
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// pathID returns the id in the path. An id with the wrong syntax gets the same
// error as one that does not exist.
func pathID(c *httpserver.Context, object string) (string, error) {
	id := c.PathParam("id")
	if !isValidID(id) {
		return "", &contract.Error{Code: contract.CodeNotFound, Message: "there is no such " + object}
	}
	return id, nil
}

func isValidID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return id != "" && len(id) <= maxIDLen
}
