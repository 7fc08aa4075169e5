package client

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
)

// Options configures a client. Zero fields take the defaults named.
type Options struct {
	Endpoints []string       // base URLs of the nodes, at least one
	Tier      sandbox.Tier   // least isolation accepted, A or B; default A. Nodes that give less refuse the calls
	Limits    sandbox.Limits // of calls that leave them out; zero fields are the service's defaults
	// InFlight is how many calls are on the wire to one node, default 256: enough to keep a node of 64 cores busy while
	// answers travel. The rest wait here, where they cost less.
	InFlight       int
	MaxOutstanding int           // calls in Run at once, default 131072; more are refused
	Attempts       int           // sends of a call that may have reached a sandbox, default 3
	Patience       time.Duration // how long no node may answer before calls fail, default 1 min: longer than a node's restart
	Log            *slog.Logger
}

func (o Options) resolve() (Options, error) {
	o.Tier = cmp.Or(o.Tier, sandbox.TierA)
	o.InFlight = cmp.Or(o.InFlight, 256)
	o.MaxOutstanding = cmp.Or(o.MaxOutstanding, 131072)
	o.Attempts = cmp.Or(o.Attempts, 3)
	o.Patience = cmp.Or(o.Patience, time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case len(o.Endpoints) == 0:
		return o, errors.New("sandbox client: no endpoint: give the base URL of at least one sandbox service")
	case o.Tier != sandbox.TierA && o.Tier != sandbox.TierB:
		return o, fmt.Errorf("sandbox client: tier is %q, expected A or B", o.Tier)
	case o.InFlight < 1 || o.MaxOutstanding < 1 || o.Attempts < 1 || o.Patience < 0:
		return o, fmt.Errorf("sandbox client: in flight, outstanding, attempts and patience are %d, %d, %d and %v, expected at least 1, 1, 1 and 0", o.InFlight, o.MaxOutstanding, o.Attempts, o.Patience)
	}
	seen := map[string]bool{}
	var bases []string
	for _, e := range o.Endpoints {
		base, err := ParseEndpoint(e)
		if err != nil {
			return o, err
		}
		if !seen[base] {
			seen[base] = true
			bases = append(bases, base)
		}
	}
	o.Endpoints = bases
	return o, nil
}

// ParseEndpoint checks the base URL of a sandbox service and returns it without a trailing slash.
func ParseEndpoint(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("sandbox endpoint is %q, expected the base URL of a service, such as http://sandbox-0:8088", text)
	}
	return strings.TrimRight(u.String(), "/"), nil
}
