package rest

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// Bounds of the parameters of a page.
const (
	maxPage   = 1000
	maxCursor = 512
	maxID     = 64
)

// query reads the parameters of a GET. Its methods return zero values for what
// is absent or wrong; err tells of all mistakes together.
type query struct {
	values  url.Values
	details []contract.ErrorDetail
}

// readQuery takes the named parameters, each at most once, and no others.
func readQuery(raw string, names ...string) *query {
	values, err := url.ParseQuery(raw)
	q := &query{values: values}
	if err != nil {
		q.wrong("", "the query of the URL is not well formed")
		return q
	}
	var unknown []string
	for name, given := range values {
		switch {
		case !slices.Contains(names, name):
			unknown = append(unknown, name)
		case len(given) > 1:
			q.wrong(name, "is given more than once")
		}
	}
	if len(unknown) > 0 { // one of them is enough to see what is wrong
		q.wrong(slices.Min(unknown), "unknown parameter; there are "+strings.Join(names, ", "))
	}
	return q
}

func (q *query) wrong(name, detail string) {
	pointer := ""
	if name != "" {
		pointer = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name) // RFC 6901 §3
	}
	q.details = append(q.details, contract.ErrorDetail{Pointer: pointer, Detail: detail})
}

// text returns a parameter that ok likes.
func (q *query) text(name string, ok func(string) bool, detail string) string {
	value := q.values.Get(name)
	if value == "" && !q.values.Has(name) {
		return ""
	}
	if !ok(value) {
		q.wrong(name, detail)
		return ""
	}
	return value
}

func (q *query) oneOf(name string, values ...string) string {
	return q.text(name, func(s string) bool { return slices.Contains(values, s) }, "must be one of: "+strings.Join(values, ", "))
}

// firstYear and lastYear bound a time: further away is nothing that was stored
// here, and no clock that is right.
const (
	firstYear = 1970
	lastYear  = 9999
)

func (q *query) time(name string) time.Time {
	value := q.values.Get(name)
	if !q.values.Has(name) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, value)
	switch year := at.UTC().Year(); {
	case err != nil:
		q.wrong(name, "must be a time like 2026-01-02T15:04:05Z (RFC 3339); a + is written %2B")
	case year < firstYear || year > lastYear:
		q.wrong(name, fmt.Sprintf("must be a time of the years %d to %d", firstYear, lastYear))
	default:
		return at
	}
	return time.Time{}
}

func (q *query) limit() int {
	n := 0
	q.text("limit", func(s string) bool {
		var err error
		n, err = strconv.Atoi(s)
		return err == nil && digits(s) && n >= 1 && n <= maxPage
	}, fmt.Sprintf("must be a whole number from 1 to %d", maxPage))
	return n
}

func (q *query) cursor() string {
	return q.text("cursor", func(s string) bool { return printable(s, maxCursor) }, "is not a cursor of an earlier page")
}

func (q *query) err() error {
	slices.SortFunc(q.details, func(a, b contract.ErrorDetail) int { return strings.Compare(a.Pointer, b.Pointer) })
	return invalid(q.details)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// pathID returns the id in the path. What cannot be one is answered like one
// that does not exist, and gets no further.
func pathID(c echo.Context, what string) (string, error) {
	id := c.Param("id")
	if !validID(id) {
		return "", &contract.Error{Code: contract.CodeNotFound, Message: "there is no such " + what}
	}
	return id, nil
}

func validID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}
