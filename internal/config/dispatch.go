package config

import (
	"fmt"
	"net/netip"
	"time"
)

// Dispatch specifies how tasks are sent to agents.
type Dispatch struct {
	TimeoutMS      int        `yaml:"timeout_ms" validate:"range=1 600000"`    // of a request without a timeout
	MaxInFlight    int        `yaml:"max_in_flight" validate:"range=1 100000"` // tasks of all agents together
	TokenReuseS    int        `yaml:"token_reuse_s" validate:"range=0 3600"`   // 0 = one token a task
	AllowPlainHTTP bool       `yaml:"allow_plain_http"`                        // send tokens to other hosts without TLS
	AllowPrivate   StringList `yaml:"allow_private"`                           // private ranges that self-registered agents may use
	Aggregate      string     `yaml:"aggregate" validate:"oneof=sections llm_summary"`
}

// Values of Dispatch.Aggregate: how the results of several agents become one answer.
const (
	AggregateSections = "sections"
	AggregateSummary  = "llm_summary"
)

// Timeout returns TimeoutMS as a duration.
func (c *Dispatch) Timeout() time.Duration {
	return time.Duration(c.TimeoutMS) * time.Millisecond
}

func (c *Dispatch) validate() error {
	_, err := c.PrivatePrefixes()
	return err
}

// PrivatePrefixes parses AllowPrivate: ranges or single addresses.
func (c *Dispatch) PrivatePrefixes() ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(c.AllowPrivate))
	for _, s := range c.AllowPrivate {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			addr, err := netip.ParseAddr(s)
			if err != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("dispatch.allow_private: %q is not a range of addresses, e.g. 10.1.0.0/16", s)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("dispatch.allow_private: %q is an IPv4-mapped IPv6 range; write it as IPv4", s)
		}
		if p != p.Masked() {
			return nil, fmt.Errorf("dispatch.allow_private: %q names an address within a range; the range is %s", s, p.Masked())
		}
		out = append(out, p)
	}
	return out, nil
}
