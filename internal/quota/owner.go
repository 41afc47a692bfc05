package quota

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/caprouter/caprouter/contract"
)

// Owner pays for stored bytes: a tenant, or a principal without one. It is stored with
// the values, so a principal is a hash and no name.
type Owner struct {
	Tenant    string `json:"tenant,omitempty"`
	Principal string `json:"principal,omitempty"` // hash of issuer and subject; "" with a Tenant
}

// OwnerOf returns the owner of what a caller stores.
func OwnerOf(c *contract.Caller) Owner {
	if c.Tenant != "" {
		return Owner{Tenant: c.Tenant}
	}
	sum := sha256.Sum256([]byte(c.Issuer + "\x00" + c.Subject))
	return Owner{Principal: hex.EncodeToString(sum[:8])}
}

// String returns the name of the owner in log lines and metrics.
func (o Owner) String() string {
	if o.Tenant != "" {
		return o.Tenant
	}
	return "caller:" + o.Principal
}
