// Package session connects a command to the stack it works with: the Temporal server and the object store, which are a
// user's own or the embedded ones of a folder.
package session

import (
	"os"
	"strconv"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/ranks"
	"github.com/restar-rl/restar/workers/store"
	"github.com/spf13/pflag"
)

// Options say where the stack is. Without a Temporal address it is the embedded one of Dir.
type Options struct {
	Dir       string // data folder of the embedded stack, and where reports are written
	Temporal  string // host:port
	Namespace string
	S3        string // URL
	Bucket    string
	Region    string
	Ranks     int // processes that share the steps of each trainer started here
	accessKey string
	secretKey string
}

// Register adds the flags. Each takes its default from the environment, which is also how worker processes get them.
func (o *Options) Register(fs *pflag.FlagSet) {
	fs.StringVar(&o.Dir, "dir", ".restar", "data folder of the embedded stack, and where reports are written")
	fs.StringVar(&o.Temporal, "temporal", os.Getenv("RESTAR_TEMPORAL"), "address of a Temporal server, host:port (RESTAR_TEMPORAL); without one the embedded stack is started")
	fs.StringVar(&o.Namespace, "namespace", env("RESTAR_NAMESPACE", "default"), "Temporal namespace (RESTAR_NAMESPACE)")
	fs.StringVar(&o.S3, "s3", os.Getenv("RESTAR_S3_ENDPOINT"), "URL of an S3 endpoint (RESTAR_S3_ENDPOINT); credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	fs.StringVar(&o.Bucket, "bucket", os.Getenv("RESTAR_BUCKET"), "S3 bucket (RESTAR_BUCKET)")
	fs.IntVar(&o.Ranks, "ranks", envInt("RESTAR_RANKS", 1), "processes that share each step of a trainer started here: 1, 2, 4 or 8 (RESTAR_RANKS); their number changes no bit")
	fs.StringVar(&o.Region, "region", env("AWS_REGION", "us-east-1"), "S3 region (AWS_REGION)")
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// envInt reads a number from the environment. Text that is no number gives 0, which the flag's own check refuses.
func envInt(name string, otherwise int) int {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0
	}
	return n
}

// Local tells whether the embedded stack is meant.
func (o Options) Local() bool { return o.Temporal == "" }

// complete adds the credentials and refuses half a stack.
func (o *Options) complete() error {
	if err := (ranks.Processes{Count: o.Ranks}).Check(); err != nil {
		return fault.Userf("--ranks (or RESTAR_RANKS): %w", err)
	}
	if o.Local() {
		if o.S3 != "" {
			return fault.Userf("--s3 %s is given without --temporal; give both for your own stack, or neither for the embedded one", o.S3)
		}
		return nil
	}
	if o.S3 == "" || o.Bucket == "" {
		return fault.Userf("--temporal %s is given with S3 endpoint %q and bucket %q; a run needs all three: add --s3 URL and --bucket NAME (or RESTAR_S3_ENDPOINT and RESTAR_BUCKET)",
			o.Temporal, o.S3, o.Bucket)
	}
	o.accessKey, o.secretKey = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if o.accessKey == "" || o.secretKey == "" {
		return fault.Userf("no credentials for %s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", o.S3)
	}
	return nil
}

func (o Options) s3() store.S3Options {
	return store.S3Options{Endpoint: o.S3, Region: o.Region, Bucket: o.Bucket, AccessKey: o.accessKey, SecretKey: o.secretKey}
}
