package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// credentialFiles matches paths, in lower case and with slashes, of files that usually
// contain credentials.
var credentialFiles = regexp.MustCompile(`(?:^|/)(?:` + strings.Join([]string{
	`\.ssh/.*`, `\.ssh`, `id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:\.old|\.bak)?`, `ssh_host_[a-z0-9]+_key`,
	`\.aws(?:/.*)?`, `\.azure/.*`, `\.config/gcloud/.*`, `application_default_credentials\.json`, `\.oci/.*`, `\.boto`, `\.s3cfg`,
	`\.gnupg(?:/.*)?`, `\.kube(?:/.*)?`, `kubeconfig`, `\.docker/config\.json`, `\.dockercfg`,
	`\.netrc`, `_netrc`, `\.pgpass`, `\.my\.cnf`, `\.npmrc`, `\.pypirc`, `\.git-credentials`, `\.config/gh/hosts\.yml`, `\.vault-token`,
	`\.terraform\.d/credentials.*`, `\.terraformrc`, `\.env`, `\.env\.(?:local|dev|development|prod|production|staging|test)(?:\.local)?`, `\.envrc`,
	`[^/]*\.(?:pem|p12|pfx|jks|keystore|kdbx|ppk|key)`, `(?:client_)?credentials?(?:\.json|\.ya?ml|\.ini|\.xml)?`, `client_secrets?[^/]*\.json`, `service[-_]?account[^/]*\.json`,
	`secrets?\.(?:json|ya?ml|toml|ini|env)`, `\.htpasswd`, `wallet\.dat`, `(?:run|var/run)/secrets/.*`,
	`etc/(?:shadow|gshadow|passwd|sudoers(?:\.d/.*)?|krb5\.keytab)`, `proc/[^/]+/(?:environ|cmdline|mem|fd/.*|maps)`,
	`login data(?:-journal)?`, `cookies(?:\.sqlite|\.binarycookies)?`, `logins\.json`, `key[34]\.db`, `login\.keychain(?:-db)?`, `keychains/.*`,
	`\.(?:bash|zsh|python|psql|mysql|node_repl)_history`, `\.config/rclone/rclone\.conf`, `sam`, `ntds\.dit`, `config/sam`,
}, "|") + `)$`)

// autostartFiles matches paths of files whose content is executed later.
var autostartFiles = regexp.MustCompile(`(?:^|/)(?:` + strings.Join([]string{
	`\.ssh/(?:authorized_keys2?|rc|config)`, `\.(?:bashrc|bash_profile|bash_login|bash_logout|profile|zshrc|zshenv|zprofile|zlogin|kshrc|cshrc|tcshrc|xinitrc|xprofile|vimrc|inputrc)`,
	`\.config/(?:autostart|fish|systemd)/.*`, `etc/(?:cron[^/]*|systemd|init\.d|profile(?:\.d)?|rc\.local|ld\.so\.preload|sudoers(?:\.d)?|pam\.d|bash\.bashrc|xdg/autostart)(?:/.*)?`,
	`cron/crontabs/.*`, `crontab`, `usr/lib/systemd/.*`, `library/launch(?:agents|daemons)/.*`, `start menu/programs/startup/.*`, `startup/.*`,
	`\.git/(?:hooks/.*|config)`, `\.gitmodules`, `\.husky/.*`, `\.vscode/(?:tasks|settings)\.json`,
}, "|") + `)$`)

var windowsDrive = regexp.MustCompile(`^[a-z]:/`)

// isPathArgument reports whether a value is a path: by its name, or by its form.
func isPathArgument(l *leaf) bool {
	if strings.Contains(l.text, "://") && !strings.HasPrefix(strings.ToLower(l.text), "file:") || len(l.text) > 4096 || strings.ContainsAny(l.text, "\n\r") {
		return false
	}
	if l.isNamed("path", "paths", "file", "files", "filename", "filepath", "directory", "dir", "folder", "source", "destination", "src", "dst", "cwd",
		"attachments", "attachment", "pattern", "glob", "key", "workdir", "root", "output", "input", "include", "exclude") {
		return true
	}
	text := cleanSlashes(l.text)
	return !l.isFreeText() && (strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, "../") || windowsDrive.MatchString(text))
}

// cleanSlashes returns a path in lower case with slashes, as the same file may be spelt.
func cleanSlashes(p string) string {
	p = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(p), `\`, "/"))
	return strings.TrimPrefix(strings.TrimPrefix(p, "file://"), "file:")
}

// decodePath removes percent-encoding, also if it was applied repeatedly.
func decodePath(p string) string {
	for range maxDecodeDepth {
		decoded := percentEscape.ReplaceAllStringFunc(p, func(escape string) string {
			return string([]byte{hexDigit(escape[1])<<4 | hexDigit(escape[2])})
		})
		if decoded == p {
			break
		}
		p = decoded
	}
	return p
}

func hexDigit(b byte) byte {
	if b <= '9' {
		return b - '0'
	}
	return b | 0x20 - 'a' + 10
}

// judgePaths adds the findings about paths.
func (j *judgement) judgePaths() {
	for i := range j.leaves {
		l := &j.leaves[i]
		if l.text == "" || !isPathArgument(l) {
			continue
		}
		j.judgePath(l)
	}
}

func (j *judgement) judgePath(l *leaf) {
	decoded := decodePath(l.text)
	exact := strings.ReplaceAll(decoded, `\`, "/") // roots are compared with case
	p := cleanSlashes(decoded)
	cleaned := path.Clean(p)
	climbs := slices.Contains(strings.Split(p, "/"), "..")
	inside := j.isInsideRoots(path.Clean(exact))
	if climbs && (!inside || decoded != l.text) || strings.ContainsRune(decoded, 0) {
		j.found.add(findPathTraversal, l.pointer)
	}
	if credentialFiles.MatchString(cleaned) && !strings.Contains(cleaned, "*.") || credentialFiles.MatchString(strings.TrimLeft(cleaned, "*/")) {
		j.found.add(findCredentialFile, l.pointer)
	}
	// A pattern, a name of an object or a source of a copy is not written.
	if !j.traits.writesFiles || l.isNamed("pattern", "glob", "key", "include", "exclude", "url") || l.hasKey("edits") {
		return
	}
	if autostartFiles.MatchString(cleaned) {
		j.found.add(findAutostartFile, l.pointer)
	}
	if !inside {
		j.found.add(findWriteOutside, l.pointer)
	}
}

// isInsideRoots reports whether a clean path is in a root. A relative path is, if there are
// roots, because a server resolves it in its working directory.
func (j *judgement) isInsideRoots(p string) bool {
	if len(j.policy.roots) == 0 || p == ".." || strings.HasPrefix(p, "../") || strings.HasPrefix(p, "~") {
		return false
	}
	if !strings.HasPrefix(p, "/") && !windowsDrive.MatchString(strings.ToLower(p)) {
		return true
	}
	return slices.ContainsFunc(j.policy.roots, func(root string) bool {
		return p == root || strings.HasPrefix(p, strings.TrimSuffix(root, "/")+"/")
	})
}
