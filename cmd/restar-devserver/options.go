package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// host is the only address served: nothing here asks who is calling except S3.
const host = "127.0.0.1"

// minFree is the space below which a start is refused: room for the database
// (tens of MB), the log, and a few checkpoints of the smallest models.
const minFree = 256 << 20

// options are the command line after validation. Every path is absolute: the
// S3 backend changes the process's working directory.
type options struct {
	dir   string
	ready string
	log   string
	grpc  int
	ui    int
	s3    int
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("restar-devserver", flag.ContinueOnError)
	fs.StringVar(&o.dir, "dir", "", "data folder (required); created when missing")
	fs.StringVar(&o.ready, "ready", "", "write this JSON file when everything answers (default DIR/ready.json)")
	fs.StringVar(&o.log, "log", "", "log file (default DIR/logs/devserver.log)")
	fs.IntVar(&o.grpc, "grpc", 7233, "port of the Temporal frontend; 0 chooses a free one")
	fs.IntVar(&o.ui, "ui", 8233, "port of the Temporal Web UI; 0 chooses a free one")
	fs.IntVar(&o.s3, "s3", 9000, "port of the S3 server; 0 chooses a free one")
	if err := fs.Parse(args); err != nil {
		if err == flag.ErrHelp {
			return o, err
		}
		return o, usageError{err.Error()}
	}
	if fs.NArg() > 0 {
		return o, usagef("unknown argument %q; every option is a flag, see -help", fs.Arg(0))
	}
	return o, o.complete()
}

func (o *options) complete() error {
	if o.dir == "" {
		return usagef("--dir is missing: name the data folder, e.g. --dir ./.restar")
	}
	for _, p := range []struct {
		flag string
		port int
	}{{"--grpc", o.grpc}, {"--ui", o.ui}, {"--s3", o.s3}} {
		if p.port < 0 || p.port > 65535 {
			return usagef("%s %d is no port: want 1 to 65535, or 0 to choose a free one", p.flag, p.port)
		}
	}
	if o.ready == "" {
		o.ready = filepath.Join(o.dir, "ready.json")
	}
	if o.log == "" {
		o.log = filepath.Join(o.dir, "logs", "devserver.log")
	}
	for _, p := range []*string{&o.dir, &o.ready, &o.log} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return usagef("path %q has no absolute form: %v", *p, err)
		}
		*p = abs
	}
	return nil
}

// prepare makes the data folder and checks that it can hold a run.
func (o options) prepare() error {
	// SQLite is opened by URI, where these characters mean something else.
	if i := strings.IndexAny(o.dir, "?#%"); i >= 0 {
		return usagef("data folder %s contains %q, which SQLite cannot open; choose a path without ?, # and %%", o.dir, o.dir[i])
	}
	for _, d := range []string{o.dir, filepath.Dir(o.ready), filepath.Dir(o.log)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return usagef("folder %s cannot be made (%v); choose another with --dir or fix its permissions", d, err)
		}
	}
	return o.checkSpace()
}

func (o options) checkSpace() error {
	probe, err := os.CreateTemp(o.dir, ".write-probe-")
	if err != nil {
		return usagef("data folder %s cannot be written (%v); choose another with --dir or fix its permissions", o.dir, err)
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	var st unix.Statfs_t
	if err := unix.Statfs(o.dir, &st); err != nil {
		return fmt.Errorf("free space of %s: %w", o.dir, err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < minFree {
		return usagef("no space: the file system of %s has %d MiB free, want at least %d; free some or choose another folder with --dir", o.dir, free>>20, uint64(minFree)>>20)
	}
	return nil
}
