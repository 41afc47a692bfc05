package mcpfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/filekind"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Load reads a file; see [Parse].
func Load(path string) (*File, error) {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := Parse(path, data)
	return f, filekind.Explain(err, filekind.Servers, path, data)
}

// Parse parses the content of a file. name is the name of the source in errors,
// which are of type strictyaml.Errors.
func Parse(name string, data []byte) (*File, error) {
	r := &reader{file: name, data: blankComments(data)}
	f := &File{Name: name}
	if top := r.readObject("", r.data); top != nil {
		r.readFile(f, top)
		r.checkServers(f.Servers)
	}
	slices.SortStableFunc(r.errs, comparePositions)
	slices.SortStableFunc(r.warnings, comparePositions)
	for _, w := range r.warnings {
		f.Warnings = append(f.Warnings, w.Error())
	}
	slices.SortStableFunc(f.Servers, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	if len(r.errs) > 0 {
		return nil, r.limitErrors()
	}
	return f, nil
}

func comparePositions(a, b strictyaml.Error) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// reader reads one file and collects its errors and warnings.
type reader struct {
	file     string
	data     []byte
	errs     strictyaml.Errors
	warnings strictyaml.Errors
	columns  []int // of the servers, in their order
}

func (r *reader) limitErrors() strictyaml.Errors {
	if more := len(r.errs) - strictyaml.MaxErrors; more > 0 {
		return append(r.errs[:strictyaml.MaxErrors:strictyaml.MaxErrors], strictyaml.Error{File: r.file, Detail: fmt.Sprintf("%d more errors", more)})
	}
	return r.errs
}

func (r *reader) newError(pointer, format string, args ...any) strictyaml.Error {
	line, column := strictjson.Position(r.data, pointer)
	return strictyaml.Error{File: r.file, Line: line, Column: column, Detail: fmt.Sprintf(format, args...)}
}

// maxCollected bounds the errors, and the warnings, whose positions are computed.
const maxCollected = 200

func (r *reader) errorf(pointer, format string, args ...any) {
	if len(r.errs) < maxCollected {
		r.errs = append(r.errs, r.newError(pointer, format, args...))
	}
}

func (r *reader) warnf(pointer, format string, args ...any) {
	if len(r.warnings) < maxCollected {
		r.warnings = append(r.warnings, r.newError(pointer, format, args...))
	}
}

// object is an object of the file whose members are read by name.
type object struct {
	*reader
	at      string // JSON pointer
	members map[string]json.RawMessage
	known   []string // names that have been asked for
}

// readObject returns the object, or nil after an error.
func (r *reader) readObject(at string, raw json.RawMessage) *object {
	o := &object{reader: r, at: at}
	if !r.decode(at, raw, &o.members) {
		return nil
	}
	return o
}

// decode decodes the value at the pointer, and reports whether that succeeded.
func (r *reader) decode(at string, raw json.RawMessage, v any) bool {
	err := strictjson.Unmarshal(raw, v)
	if err == nil {
		return true
	}
	e, ok := errors.AsType[*strictjson.Error](err)
	switch {
	case !ok:
		r.errorf(at, "%v", err)
	case at == "" && e.Syntax:
		line, column, detail := e.Locate(r.data)
		r.errs = append(r.errs, strictyaml.Error{File: r.file, Line: line, Column: column, Detail: "the file " + detail})
	default:
		r.errorf(at+e.Pointer, "%s", describe(at+e.Pointer, e.Detail))
	}
	return false
}

// describe puts the name of the member before the detail, such as "must be a string".
func describe(pointer, detail string) string {
	name := pointer[strings.LastIndexByte(pointer, '/')+1:]
	if name == "" {
		return "the file " + detail
	}
	return unescape(name) + " " + detail
}

func unescape(token string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// find returns the member with one of the names, which mean the same.
func (o *object) find(names ...string) (name string, raw json.RawMessage) {
	first := !slices.Contains(o.known, names[0])
	if first {
		o.known = append(o.known, names...)
	}
	for _, n := range names {
		value, ok := o.members[n]
		switch {
		case !ok:
		case raw != nil && !first: // reported already
		case raw != nil:
			o.errorf(strictjson.AppendPointer(o.at, n), "%s and %s mean the same: remove one of them", name, n)
		default:
			name, raw = n, value
		}
	}
	return name, raw
}

// get returns the member with one of the names, or the zero value if it is absent
// or invalid.
func get[T any](o *object, names ...string) T {
	var v, zero T
	name, raw := o.find(names...)
	if raw == nil || !o.decode(strictjson.AppendPointer(o.at, name), raw, &v) {
		return zero
	}
	return v
}

// getObject returns the member with one of the names, or nil.
func (o *object) getObject(names ...string) *object {
	name, raw := o.find(names...)
	if raw == nil {
		return nil
	}
	return o.readObject(strictjson.AppendPointer(o.at, name), raw)
}

// getMS returns a number of milliseconds.
func (o *object) getMS(names ...string) int {
	ms := get[int](o, names...)
	if ms < 0 || ms > maxMS {
		name, _ := o.find(names...)
		o.errorf(strictjson.AppendPointer(o.at, name), "%s is %d: it must be from 0 to %d milliseconds", name, ms, maxMS)
		return 0
	}
	return ms
}

// maxMS is a day.
const maxMS = 24 * 60 * 60 * 1000

// checkUnknown reports the members that were not asked for: as errors or, if the
// file belongs to another program, as warnings.
func (o *object) checkUnknown(foreign bool) {
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		at := strictjson.AppendPointer(o.at, name)
		switch near := strictyaml.Nearest(name, o.known); {
		case slices.Contains(o.known, name):
		case foreign:
			o.warnf(at, "%q is ignored", name)
		case near != "":
			o.errorf(at, "unknown key %q; did you mean %q?", name, near)
		default:
			o.errorf(at, "unknown key %q; known here: %s", name, strings.Join(o.known, ", "))
		}
	}
}
