package mcphost

import (
	"errors"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// BucketName is the name of the bucket of registrations.
const BucketName = "MCP_SERVERS"

// recordPrefix begins the keys of registrations.
const recordPrefix = "server."

// registrationRecord is the stored form of a registration. A record with members that this
// version does not know is not used, because they may restrict the server.
type registrationRecord struct {
	Registration Registration `json:"registration"`
	By           string       `json:"by,omitempty"` // subject of the caller
	At           time.Time    `json:"at"`

	outdated bool // encrypted with an older key of the ring
}

// recordKey returns the key of a server's record. Keys have no empty parts between dots, and
// names have no "=".
func recordKey(name string) string { return strings.ReplaceAll(name, ".", "=") }

// recordName is the inverse of recordKey.
func recordName(key string) (string, bool) {
	name := strings.ReplaceAll(key, "=", ".")
	return name, validName.MatchString(name) && recordKey(name) == key
}

// newRecords returns the table of registrations. Their headers and URLs may contain
// credentials, so the records are encrypted, here and not by the bucket, because other
// processes watch it. The associated data binds a record to its server.
func newRecords(bucket *store.Bucket, keys *contentkey.Keyring) *store.Table[registrationRecord] {
	associatedData := func(key string) []byte { return []byte("caprouter MCP server\x00" + key) }
	return store.NewTable(bucket, store.TableConfig[registrationRecord]{
		Prefix: recordPrefix,
		Encode: func(key string, record *registrationRecord) ([]byte, error) {
			data, err := strictjson.Marshal(record)
			if err != nil {
				return nil, err
			}
			return keys.Seal(data, associatedData(key)), nil
		},
		Decode: func(key string, sealed []byte) (*registrationRecord, error) {
			name, ok := recordName(key)
			if !ok {
				return nil, errors.New("its key is not that of a server")
			}
			data, err := keys.Open(sealed, associatedData(key))
			if err != nil {
				return nil, err
			}
			record := &registrationRecord{outdated: !keys.SealedByCurrent(sealed)}
			if err := strictjson.Unmarshal(data, record); err != nil {
				return nil, err
			}
			if record.Registration.Name != name {
				return nil, errors.New("it is that of another server")
			}
			return record, nil
		},
	})
}
