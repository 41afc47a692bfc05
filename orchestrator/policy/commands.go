package policy

import (
	"regexp"
	"strings"
)

var (
	// shellSyntax matches what a shell executes inside a value: $(…), `…`, and a
	// separator followed by a word.
	shellSyntax = regexp.MustCompile("\\$\\(|\\$\\{?IFS|`[^`]+`|(?:;|\\|\\|?|&&)\\s*[a-zA-Z/.]|[<>]\\(")
	// optionValue matches an option where a name is expected.
	optionValue = regexp.MustCompile(`^\s*--?[a-zA-Z][\w-]*(?:[= ]|$)`)

	sqlStart = regexp.MustCompile(`(?is)^\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*|\(\s*)*(?:select|insert|update|delete|with|drop|create|alter|truncate|copy|grant|revoke|explain|merge|call|do|set|commit|rollback|begin|pragma|attach|load|vacuum|exec|execute|show|declare)\b`)
	// sqlOutside matches access to programs, files and other servers.
	sqlOutside = regexp.MustCompile(`(?is)\bcopy\b.*\b(?:program|to|from)\s*'|\bcopy\b.*\bprogram\b|\bpg_(?:read_file|read_binary_file|ls_dir|stat_file|file_write|execute_server_program)\b|\blo_(?:import|export)\b|\bdblink\w*\s*\(|\bpostgres_fdw\b|\bload_file\s*\(|\binto\s+(?:outfile|dumpfile)\b|\bload\s+data\b|\bxp_\w+|\bsp_oacreate\b|\bopenrowset\b|\butl_(?:http|file|tcp|smtp)\b|\bload_extension\s*\(|\battach\s+(?:database\s+)?'|\b(?:net\.)?http_(?:get|post|put)\s*\(|\bcreate\s+(?:or\s+replace\s+)?(?:function|extension|server|trigger)\b`)
	// sqlCredentials matches the tables of credentials of databases.
	sqlCredentials = regexp.MustCompile(`(?i)\bpg_(?:shadow|authid|user_mapping)\b|\bmysql\.(?:user|global_priv)\b|\bsys\.(?:sql_logins|user\$)|\bdba_users\b|\bpasswd\b|\bpassword_hash\b`)
	sqlWhole       = regexp.MustCompile(`(?is)^\s*(?:drop|truncate|grant|revoke)\b`)
	sqlRows        = regexp.MustCompile(`(?is)^\s*(?:delete\s+from|update)\b`)
	sqlWhere       = regexp.MustCompile(`(?is)\bwhere\b`)
	sqlAlways      = regexp.MustCompile(`(?is)\bwhere\s+(?:1\s*=\s*1|true)\b`)
	sqlLiteral     = regexp.MustCompile(`'(?:[^']|'')*'`)
)

func isSQL(text string) bool { return sqlStart.MatchString(text) }

// judgeCommands adds the findings about commands, code and SQL.
func (j *judgement) judgeCommands() {
	if j.traits.executes {
		j.found.add(findCommand, "")
	}
	if j.traits.reveals {
		j.found.add(findCredentialTool, "")
	}
	for i := range j.leaves {
		l := &j.leaves[i]
		if l.isNamed("sql", "query", "statement") && isSQL(l.text) {
			j.judgeSQL(l)
			continue
		}
		if l.isFreeText() || j.traits.executes || l.member == "" || l.hasKey("edits", "content", "children", "properties", "payload") || schemeStart.MatchString(l.text) && strings.Contains(l.text, "://") {
			continue
		}
		if shellSyntax.MatchString(l.text) || optionValue.MatchString(l.text) {
			j.found.add(findInjection, l.pointer)
		}
	}
}

// judgeSQL examines the statements of a text of SQL.
func (j *judgement) judgeSQL(l *leaf) {
	if sqlOutside.MatchString(l.text) {
		j.found.add(findSQLProgram, l.pointer)
	}
	text := sqlLiteral.ReplaceAllString(l.text, "''")
	if sqlCredentials.MatchString(text) {
		j.found.add(findCredentialTool, l.pointer)
	}
	for statement := range strings.SplitSeq(text, ";") {
		whole := sqlRows.MatchString(statement) && (!sqlWhere.MatchString(statement) || sqlAlways.MatchString(statement))
		if whole || sqlWhole.MatchString(statement) {
			j.found.add(findSQLDestructive, l.pointer)
		}
	}
}
