package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

const (
	// bucket holds every object of restar.
	bucket = "restar"
	// copyThreshold is S3's own limit for one copy; unset, every copy fails.
	copyThreshold = 5 << 30
	// fileActions bounds concurrent file-system calls, hence threads.
	fileActions = 256
	// maxConnections and maxRequests serve thousands of journal writers.
	maxConnections = 4096
	maxRequests    = 2048
	// maxParts is S3's own limit for a multipart upload.
	maxParts = 10000
	// healthPath answers 200 without credentials when the server is up.
	healthPath = "/healthz"
)

// openObjects opens the folder of objects: plain files under DIR/s3/BUCKET/KEY
// with metadata in extended attributes, or beside them where the file system
// has none. It changes the process's working directory.
func openObjects(dir string) (backend.Backend, error) {
	root := filepath.Join(dir, "s3")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, usagef("object folder %s cannot be made (%v); fix its permissions", root, err)
	}
	opts := posix.PosixOpts{CopyObjectThreshold: copyThreshold, Concurrency: fileActions}
	store, sidecar, err := metadata(dir, root)
	if err != nil {
		return nil, err
	}
	opts.SideCarDir = sidecar
	be, err := posix.New(root, store, opts)
	if err != nil {
		return nil, usagef("object folder %s cannot be served (%v); choose another with --dir", root, err)
	}
	return &durable{Backend: be, root: root, sidecar: sidecar}, nil
}

// metadata chooses where object metadata lives. A folder that began with
// sidecar files stays with them.
func metadata(dir, root string) (meta.MetadataStorer, string, error) {
	// The backend refuses a sidecar folder whose path begins with the root's.
	sidecar := filepath.Join(dir, "meta-s3")
	_, statErr := os.Stat(sidecar)
	if statErr != nil && xattrsWork(root) {
		return meta.XattrMeta{}, "", nil
	}
	if err := os.MkdirAll(sidecar, 0o700); err != nil {
		return nil, "", usagef("metadata folder %s cannot be made (%v); fix its permissions", sidecar, err)
	}
	store, err := meta.NewSideCar(sidecar)
	if err != nil {
		return nil, "", fmt.Errorf("metadata folder %s: %w", sidecar, err)
	}
	return store, sidecar, nil
}

func runGateway(ctx context.Context, be backend.Backend, p ports, k keyPair) error {
	return embedgw.RunVersityGW(ctx, be, &embedgw.Config{
		RootUserAccess: k.AccessKey, RootUserSecret: k.SecretKey,
		Ports: []string{address(p.s3)}, MaxConnections: maxConnections, MaxRequests: maxRequests,
		MultipartMaxParts: maxParts, Quiet: true, DisableACLs: true, KeepAlive: true, HealthPath: healthPath,
	})
}
