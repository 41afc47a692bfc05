package schema

import (
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxCost bounds the steps of one validation. A step takes well below a
// microsecond.
const maxCost = 500_000

var (
	errTooExpensive = fmt.Errorf("takes more than %d steps to validate", maxCost)
	errEndless      = errors.New("cannot be validated: the schema refers to itself without end")
)

// dynamicTargets are the subschemas that a dynamic reference may mean, by anchor.
// The anchor of a recursive reference (2019-09) is "".
type dynamicTargets map[string][]*jsonschema.Schema

// findDynamicTargets returns the targets among all subschemas of s.
func findDynamicTargets(s *jsonschema.Schema) dynamicTargets {
	targets := dynamicTargets{}
	visited := map[*jsonschema.Schema]bool{}
	pending := []*jsonschema.Schema{s}
	for len(pending) > 0 {
		s := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if s == nil || visited[s] {
			continue
		}
		visited[s] = true
		if s.DynamicAnchor != "" {
			targets[s.DynamicAnchor] = append(targets[s.DynamicAnchor], s)
		}
		if s.RecursiveAnchor {
			targets[""] = append(targets[""], s)
		}
		pending = append(pending, inPlace(s)...)
		if s.DynamicRef != nil {
			pending = append(pending, s.DynamicRef.Ref)
		}
		pending = append(pending, s.RecursiveRef, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems)
		for _, sub := range s.Properties {
			pending = append(pending, sub)
		}
		for _, sub := range s.PatternProperties {
			pending = append(pending, sub)
		}
		pending = append(pending, s.PrefixItems...)
		pending = append(pending, schemasIn(s.AdditionalProperties)...)
		pending = append(pending, schemasIn(s.Items)...)
		pending = append(pending, schemasIn(s.AdditionalItems)...)
	}
	return targets
}

// inPlace returns the subschemas that apply to the same value as s.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}
	list = append(list, s.AllOf...)
	list = append(list, s.AnyOf...)
	list = append(list, s.OneOf...)
	for _, sub := range s.DependentSchemas {
		list = append(list, sub)
	}
	for _, sub := range s.Dependencies {
		list = append(list, schemasIn(sub)...)
	}
	return list
}

// schemasIn returns the subschemas of a keyword that has several types.
func schemasIn(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// value is a value with its identity, so that a pair of a subschema and a value can
// be recognized.
type value struct {
	text       string // of a string
	properties map[string]*value
	items      []*value
	size       int // values in it, and kilobytes of its text
}

func newValue(v any) *value {
	n := &value{size: 1}
	switch v := v.(type) {
	case string:
		n.text = v
		n.size += len(v) >> 10
	case []any:
		for _, item := range v {
			child := newValue(item)
			n.items = append(n.items, child)
			n.size += child.size
		}
	case map[string]any:
		n.properties = make(map[string]*value, len(v))
		for name, item := range v {
			child := newValue(item)
			n.properties[name] = child
			n.size += child.size
		}
	}
	return n
}

// countValues returns the number of values in v.
func countValues(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += countValues(item)
		}
	case map[string]any:
		for _, item := range v {
			n += countValues(item)
		}
	}
	return n
}

// pair is one step of a validation.
type pair struct {
	schema *jsonschema.Schema
	value  *value
}

// costs computes the number of steps of a validation. The steps of a pair are
// computed once; the validation takes them as often as the pair occurs.
type costs struct {
	targets dynamicTargets
	known   map[pair]int // inProgress while it is computed
}

const inProgress = -1

// checkCost returns errTooExpensive or errEndless if v must not be validated.
func (s *Schema) checkCost(v any) error {
	c := &costs{targets: s.targets, known: map[pair]int{}}
	_, err := c.of(s.compiled, newValue(v))
	return err
}

// of returns the steps of validating v with s.
func (c *costs) of(s *jsonschema.Schema, v *value) (int, error) {
	if s == nil {
		return 0, nil
	}
	p := pair{s, v}
	if known, ok := c.known[p]; ok {
		if known == inProgress {
			return 0, errEndless
		}
		return known, nil
	}
	if len(c.known) >= maxCost {
		return 0, errTooExpensive
	}
	c.known[p] = inProgress
	sum := sum{total: ownCost(s, v)}
	for _, sub := range inPlace(s) {
		sum.add(c.of(sub, v))
	}
	sum.add(c.ofDynamic(s, v))
	c.addProperties(&sum, s, v)
	c.addItems(&sum, s, v)
	if sum.err != nil {
		return 0, sum.err
	}
	c.known[p] = sum.total
	return sum.total, nil
}

// sum adds costs until they exceed the limit or an error occurs.
type sum struct {
	total int
	err   error
}

func (s *sum) add(cost int, err error) {
	switch s.total += cost; {
	case s.err != nil:
	case err != nil:
		s.err = err
	case s.total > maxCost:
		s.err = errTooExpensive
	}
}

// ofDynamic returns the cost of the most expensive target of the dynamic references
// of s, because which target applies depends on the path to s.
func (c *costs) ofDynamic(s *jsonschema.Schema, v *value) (int, error) {
	var targets []*jsonschema.Schema
	if s.DynamicRef != nil {
		targets = append(targets, s.DynamicRef.Ref)
		targets = append(targets, c.targets[s.DynamicRef.Anchor]...)
	}
	if s.RecursiveRef != nil {
		targets = append(targets, s.RecursiveRef)
		targets = append(targets, c.targets[""]...)
	}
	most := 0
	for _, target := range targets {
		cost, err := c.of(target, v)
		if err != nil {
			return 0, err
		}
		most = max(most, cost)
	}
	return most, nil
}

// addProperties adds the costs of the properties of v.
func (c *costs) addProperties(sum *sum, s *jsonschema.Schema, v *value) {
	additional := schemasIn(s.AdditionalProperties)
	for name, property := range v.properties {
		if sum.err != nil {
			return
		}
		sum.add(c.of(s.Properties[name], property))
		for pattern, sub := range s.PatternProperties {
			sum.add(patternCost(pattern, name), nil)
			if pattern.MatchString(name) {
				sum.add(c.of(sub, property))
			}
		}
		for _, sub := range additional {
			sum.add(c.of(sub, property))
		}
		sum.add(c.of(s.UnevaluatedProperties, property))
		if s.PropertyNames != nil {
			sum.add(c.of(s.PropertyNames, newValue(name)))
		}
	}
}

// addItems adds the costs of the items of v.
func (c *costs) addItems(sum *sum, s *jsonschema.Schema, v *value) {
	positional := s.PrefixItems
	var others []*jsonschema.Schema
	if list, ok := s.Items.([]*jsonschema.Schema); ok {
		positional = list
	} else {
		others = schemasIn(s.Items)
	}
	others = append(others, schemasIn(s.AdditionalItems)...)
	others = append(others, s.Items2020, s.Contains, s.UnevaluatedItems)
	for i, item := range v.items {
		if sum.err != nil {
			return
		}
		if i < len(positional) {
			sum.add(c.of(positional[i], item))
		}
		for _, sub := range others {
			sum.add(c.of(sub, item))
		}
	}
}

// ownCost returns the steps of the keywords of s that have no subschema.
func ownCost(s *jsonschema.Schema, v *value) int {
	cost := 1 + len(s.Required) + len(v.properties) + len(v.items)
	if s.Enum != nil {
		cost += countValues(s.Enum.Values)
	}
	if s.Const != nil {
		cost += countValues(*s.Const)
	}
	if s.UniqueItems {
		cost += v.size * min(len(v.items), maxPairwise)
	}
	if s.Pattern != nil {
		cost += patternCost(s.Pattern, v.text)
	}
	return cost
}

// maxPairwise is the number of items up to which the library compares all pairs.
const maxPairwise = 20

// patternCost returns the steps of matching a regular expression, which takes time
// proportional to its length and to that of the text.
func patternCost(pattern jsonschema.Regexp, text string) int {
	return 1 + len(pattern.String())*len(text)>>8
}
