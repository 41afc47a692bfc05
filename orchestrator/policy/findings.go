package policy

// Category is the kind of risk of a finding.
type Category string

// Categories.
const (
	Network         Category = "network"
	FilesystemRead  Category = "filesystem_read"
	FilesystemWrite Category = "filesystem_write"
	Credentials     Category = "credentials"
	Exfiltration    Category = "exfiltration"
	Execution       Category = "execution"
	Destructive     Category = "destructive"
	Restriction     Category = "restriction" // by the caller's own lists, or a rule without findings
)

// Finding is one thing that a call shows.
type Finding struct {
	Name     string   `json:"name"`
	Category Category `json:"category"`
	Pointer  string   `json:"pointer,omitempty"` // RFC 6901, into the arguments
	Detail   string   `json:"detail"`            // without values of arguments
}

// Names of findings.
const (
	findSecret         = "secret"
	findStoredSecret   = "stored_secret"
	findCredentialFile = "credential_file"
	findCredentialTool = "credential_tool"
	findPersonalData   = "personal_data"
	findEncodedText    = "encoded_text"
	findCopiedOutput   = "copied_output"
	findOpaqueURL      = "opaque_url"
	findUnlistedTarget = "unlisted_destination"
	findUnlistedHost   = "unlisted_host"
	findDropSite       = "drop_site"
	findPrivateAddress = "private_address"
	findUnsafeURL      = "unsafe_url"
	findPathTraversal  = "path_traversal"
	findWriteOutside   = "write_outside_roots"
	findAutostartFile  = "autostart_file"
	findCommand        = "command"
	findInjection      = "command_injection"
	findSQLProgram     = "sql_program"
	findSQLDestructive = "sql_destructive"
	findUnreadable     = "unreadable_arguments"
)

// findingKind describes the findings of one name.
type findingKind struct {
	name     string
	category Category
	detail   string
}

func findingKinds() []findingKind {
	return []findingKind{
		{findSecret, Exfiltration, "a secret leaves this machine"},
		{findStoredSecret, Credentials, "a secret is passed to a tool"},
		{findCredentialFile, Credentials, "a file that usually contains credentials"},
		{findCredentialTool, Credentials, "the tool returns credentials"},
		{findPersonalData, Exfiltration, "personal data leaves this machine"},
		{findEncodedText, Exfiltration, "a text is hidden by an encoding"},
		{findCopiedOutput, Exfiltration, "a part of an earlier output leaves this machine"},
		{findOpaqueURL, Exfiltration, "a part of the address is random or encoded data"},
		{findUnlistedTarget, Network, "data is sent to a destination that is not listed"},
		{findUnlistedHost, Network, "a host that is not listed is read"},
		{findDropSite, Exfiltration, "the host stores or forwards what anyone sends"},
		{findPrivateAddress, Network, "an address of this machine or of its network"},
		{findUnsafeURL, Network, "an address with another scheme than http or https, or with a user"},
		{findPathTraversal, FilesystemRead, "the path leaves its directory"},
		{findWriteOutside, FilesystemWrite, "a file is written outside the declared roots: add its directory to roots in the file of orchestrator.policy_file"},
		{findAutostartFile, FilesystemWrite, "a file whose content is executed later"},
		{findCommand, Execution, "the tool executes a command or code"},
		{findInjection, Execution, "an argument contains shell syntax or an option"},
		{findSQLProgram, Execution, "the statement starts programs, or reads or writes files or other servers"},
		{findSQLDestructive, Destructive, "the statement removes or changes whole tables, or rights"},
		{findUnreadable, Restriction, "the arguments are not a JSON object, or too large or too deeply encoded to examine"},
	}
}

// findings collects the findings of a call: each name once for each pointer.
type findings struct {
	kinds map[string]findingKind
	list  []Finding
}

func newFindings() *findings {
	f := &findings{kinds: map[string]findingKind{}}
	for _, k := range findingKinds() {
		f.kinds[k.name] = k
	}
	return f
}

func (f *findings) add(name, pointer string) {
	for i := range f.list {
		if f.list[i].Name == name && f.list[i].Pointer == pointer {
			return
		}
	}
	kind := f.kinds[name]
	f.list = append(f.list, Finding{Name: name, Category: kind.category, Pointer: pointer, Detail: kind.detail})
}
