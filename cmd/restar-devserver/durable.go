package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3response"
	"golang.org/x/sys/unix"
)

// durable syncs an object, and the folders that name it, before its PUT is
// acknowledged. The gateway itself never syncs: without this a power cut could
// lose objects that a workflow already counts on.
type durable struct {
	backend.Backend
	root    string
	sidecar string   // empty when metadata is in extended attributes
	named   sync.Map // folders whose own name is known to be on disk
}

func (d *durable) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	out, err := d.Backend.PutObject(ctx, in)
	if err == nil {
		err = d.flush(*in.Bucket, *in.Key)
	}
	return out, err
}

func (d *durable) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput) (s3response.CompleteMultipartUploadResult, string, error) {
	out, version, err := d.Backend.CompleteMultipartUpload(ctx, in)
	if err == nil {
		err = d.flush(*in.Bucket, *in.Key)
	}
	return out, version, err
}

func (d *durable) CreateBucket(ctx context.Context, in *s3.CreateBucketInput, acl []byte) error {
	err := d.Backend.CreateBucket(ctx, in, acl)
	if err == nil {
		err = syncPath(d.root)
	}
	return err
}

func (d *durable) flush(bucket, key string) error {
	path := filepath.Join(d.root, bucket, key)
	if err := syncPath(path); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	if err := syncPath(parent); err != nil {
		return err
	}
	if err := d.nameFolders(parent); err != nil || d.sidecar == "" {
		return err
	}
	return syncTree(filepath.Join(d.sidecar, bucket, key))
}

// nameFolders syncs each folder above dir whose entry is not known durable.
// The gateway removes folders that a deletion empties and makes them again
// later, so a name is trusted only for the very folder that was synced.
func (d *durable) nameFolders(dir string) error {
	for ; len(dir) > len(d.root); dir = filepath.Dir(dir) {
		id, err := identify(dir)
		if err != nil {
			return err
		}
		if was, ok := d.named.Load(dir); ok && was == id {
			return nil
		}
		if err := syncPath(filepath.Dir(dir)); err != nil {
			return err
		}
		d.named.Store(dir, id)
	}
	return nil
}

// identity tells a folder from a later one with the same name; inode numbers
// are reused, times of birth are not.
type identity struct {
	inode uint64
	birth unix.StatxTimestamp
}

func identify(dir string) (identity, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_INO|unix.STATX_BTIME, &st)
	return identity{inode: st.Ino, birth: st.Btime}, err
}

// syncTree flushes a small folder of metadata files.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
}

// xattrsWork tells whether user attributes can be written under dir: asking
// for one is not enough, some file systems read but do not write them.
func xattrsWork(dir string) bool {
	f, err := os.CreateTemp(dir, ".xattr-probe-")
	if err != nil {
		return false
	}
	defer os.Remove(f.Name())
	defer f.Close()
	return unix.Fsetxattr(int(f.Fd()), "user.restar.probe", []byte("1"), 0) == nil
}
