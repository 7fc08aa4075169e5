package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/restar-rl/restar/workers/store"
)

// folder reads the objects of a stopped local stack: its S3 server keeps each as a plain file under its key.
type folder struct{ root string }

// openFolder finds the objects below a run's data folder.
func openFolder(dir string) (*folder, error) {
	found, err := filepath.Glob(filepath.Join(dir, "server", "*", bucketName))
	if err != nil {
		return nil, err
	}
	for _, root := range found {
		if _, err := os.Stat(filepath.Join(root, "runs")); err == nil {
			return &folder{root}, nil
		}
	}
	return nil, fmt.Errorf("no objects of bucket %s below %s", bucketName, dir)
}

// bucketName is the local stack's bucket.
const bucketName = "restar"

var errReadOnly = errors.New("the objects of a stopped stack are only read")

// Get implements store.Store.
func (f *folder) Get(_ context.Context, key string) ([]byte, store.ETag, error) {
	body, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%s: %w", key, store.ErrNotFound)
	}
	return body, "", err
}

// List implements store.Store.
func (f *folder) List(_ context.Context, prefix string) ([]store.Entry, error) {
	var out []store.Entry
	err := filepath.WalkDir(f.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(f.root, path)
		if key := filepath.ToSlash(rel); err == nil && strings.HasPrefix(key, prefix) {
			out = append(out, store.Entry{Key: key})
		}
		return err
	})
	slices.SortFunc(out, func(a, b store.Entry) int { return strings.Compare(a.Key, b.Key) })
	return out, err
}

// Put implements store.Store.
func (f *folder) Put(context.Context, string, []byte, store.PutOptions) (store.ETag, error) {
	return "", errReadOnly
}

// Delete implements store.Store.
func (f *folder) Delete(context.Context, string) error { return errReadOnly }
