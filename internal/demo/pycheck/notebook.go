package pycheck

import (
	"fmt"
	"slices"
	"strings"
)

// notebookRules find what makes a Spark notebook slow or costly.
var notebookRules = []rule{
	{name: "collect-to-driver", severity: Warning, notebook: true, check: toDriver("collect", "collect() brings every row to the driver; limit, aggregate or write it instead")},
	{name: "to-pandas", severity: Warning, notebook: true, check: toDriver("toPandas", "toPandas() loads the whole frame into the driver's memory; limit or aggregate before it")},
	{name: "action-in-loop", severity: Warning, notebook: true, check: actionInLoop},
	{name: "display-in-loop", severity: Note, notebook: true, check: displayInLoop},
	{name: "with-column-in-loop", severity: Warning, notebook: true, check: withColumnInLoop},
	{name: "missing-cache", severity: Warning, notebook: true, check: missingCache},
	{name: "missing-unpersist", severity: Note, notebook: true, check: missingUnpersist},
	{name: "python-udf", severity: Warning, notebook: true, check: pythonUDF},
	{name: "cross-join", severity: Warning, notebook: true, check: crossJoin},
	{name: "single-partition", severity: Note, notebook: true, check: singlePartition},
	{name: "infer-schema", severity: Note, notebook: true, check: inferSchema},
}

// narrowing are the steps after which a frame is small.
var narrowing = []string{"limit", "agg", "first", "head", "take", "sample", "summary", "describe"}

func toDriver(method, message string) func(*source, func(int, string)) {
	return func(p *source, report func(int, string)) {
		for _, s := range p.all {
			for i, t := range s.toks {
				if t.text == method && s.method(i) && !containsAny(s.chain(i-1), narrowing) {
					report(t.line, message)
				}
			}
		}
	}
}

func containsAny(have, words []string) bool {
	return slices.ContainsFunc(have, func(w string) bool { return slices.Contains(words, w) })
}

// inLoop reports whether the statement runs once a turn. The header of a for
// loop itself runs once.
func (s *stmt) inLoop() bool { return s.inside("for", "while") != nil || s.keyword() == "while" }

func actionInLoop(p *source, report func(int, string)) {
	for _, s := range p.all {
		if !s.inLoop() {
			continue
		}
		for i, t := range s.toks {
			if slices.Contains([]string{"count", "collect", "toPandas", "isEmpty"}, t.text) && s.method(i) && s.at(i+1).pair == i+2 {
				report(t.line, fmt.Sprintf("%s() starts a Spark job in every turn of the loop; aggregate once before it", t.text))
			}
		}
	}
}

func displayInLoop(p *source, report func(int, string)) {
	for _, s := range p.all {
		if !s.inLoop() {
			continue
		}
		for i, t := range s.toks {
			if t.text == "display" && s.call(i) || t.text == "show" && s.method(i) {
				report(t.line, t.text+" in a loop runs a job and renders a table each turn")
			}
		}
	}
}

func withColumnInLoop(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if t.text == "withColumn" && s.method(i) && s.inLoop() {
				report(t.line, "withColumn in a loop grows the plan with every turn; use one select or withColumns")
			}
		}
	}
}

var (
	frameSteps = []string{
		"read", "table", "sql", "load", "filter", "where", "join", "groupBy", "agg", "select", "withColumn",
		"union", "unionByName", "dropDuplicates", "distinct", "orderBy", "createDataFrame",
	}
	actions = []string{"count", "collect", "toPandas", "show", "write", "foreach", "first", "head", "take", "display"}
	keeping = []string{"cache", "persist", "checkpoint", "localCheckpoint"}
)

// frameVar is a variable that holds a data frame.
type frameVar struct {
	name  string
	line  int
	kept  bool  // cached
	freed bool  // unpersisted
	runs  []int // lines of the actions on it
}

// frames returns the data frames a notebook assigns, in source order, with
// what is done to them.
func frames(p *source) []*frameVar {
	var order []*frameVar
	byName := make(map[string]*frameVar)
	for _, s := range p.all {
		for i, t := range s.toks {
			if t.kind != name {
				continue
			}
			root, direct := s.frameOf(i)
			if f := byName[root]; f != nil {
				f.note(t, s.line(), direct)
			}
		}
		at := s.assigned()
		if s.block || len(at) != 1 || !s.makesFrame() {
			continue
		}
		f := &frameVar{name: s.toks[at[0]].text, line: s.line(), kept: s.mentions(keeping)}
		byName[f.name] = f
		order = append(order, f)
	}
	return order
}

// frameOf is the variable a method or a display call at token i works on;
// direct when nothing stands between the two.
func (s *stmt) frameOf(i int) (root string, direct bool) {
	t := s.toks[i]
	if t.text == "display" && s.builtin(i) {
		return s.at(i + 2).text, true
	}
	if !s.at(i - 1).is(".") {
		return "", false
	}
	c := s.chain(i - 1)
	if len(c) == 0 || slices.Contains(c, "limit") { // a few rows cost little
		return "", false
	}
	return c[len(c)-1], len(c) == 1
}

// note books what token t does to the frame. An action runs everything before
// it, at whatever distance; cache keeps only what it is called on.
func (f *frameVar) note(t token, line int, direct bool) {
	switch {
	case slices.Contains(keeping, t.text):
		f.kept = f.kept || direct
	case t.text == "unpersist":
		f.freed = f.freed || direct
	case slices.Contains(actions, t.text):
		if n := len(f.runs); n == 0 || f.runs[n-1] != line {
			f.runs = append(f.runs, line)
		}
	}
}

func (s *stmt) makesFrame() bool {
	return s.mentions(frameSteps) && !s.mentions(actions)
}

// mentions reports whether a method or attribute has one of the names.
func (s *stmt) mentions(names []string) bool {
	for i, t := range s.toks {
		if t.kind == name && s.at(i-1).is(".") && slices.Contains(names, t.text) {
			return true
		}
	}
	return false
}

func missingCache(p *source, report func(int, string)) {
	for _, f := range frames(p) {
		if !f.kept && len(f.runs) > 1 {
			report(f.line, fmt.Sprintf("%s is computed again for each of its %s (lines %s); cache() it", f.name, plural(len(f.runs), "action"), lineList(f.runs)))
		}
	}
}

func missingUnpersist(p *source, report func(int, string)) {
	for _, f := range frames(p) {
		if f.kept && !f.freed {
			report(f.line, f.name+" is cached and never unpersisted; it holds executor memory until the cluster ends")
		}
	}
}

func lineList(lines []int) string {
	const most = 6
	parts := make([]string, 0, most+1)
	for _, n := range lines[:min(len(lines), most)] {
		parts = append(parts, fmt.Sprint(n))
	}
	if len(lines) > most {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

func pythonUDF(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if t.kind == name && t.text == "udf" && (s.call(i) || s.at(i-1).is("@")) {
				report(t.line, "a Python UDF moves every row through Python; use pyspark.sql.functions or a pandas_udf")
			}
		}
	}
}

func crossJoin(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if t.text == "crossJoin" && s.method(i) {
				report(t.line, "crossJoin multiplies the rows of both sides; join on a key")
			}
		}
	}
}

func singlePartition(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if (t.text == "repartition" || t.text == "coalesce") && s.method(i) && s.at(i+2).is("1") && s.at(i+3).is(")") {
				report(t.line, t.text+"(1) puts all data through one task")
			}
		}
	}
}

// inferSchema finds readers that read the data twice to guess its types.
func inferSchema(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			option := t.kind == text && unquote(t.text) == "inferSchema" && strings.Contains(strings.ToLower(s.at(i+2).text), "true")
			keyword := t.kind == name && t.text == "inferSchema" && s.at(i+1).is("=") && s.at(i+2).is("True")
			if option || keyword {
				report(t.line, "inferSchema reads the data twice and may guess differently next time; declare the schema")
			}
		}
	}
}
