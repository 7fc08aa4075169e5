package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Memory is a Store for tests: same contract, no durability.
type Memory struct {
	mu      sync.Mutex
	objects map[string]memoryObject
	version int64
}

type memoryObject struct {
	body []byte
	etag ETag
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{objects: map[string]memoryObject{}} }

// Get implements Store.
func (m *Memory) Get(ctx context.Context, key string) ([]byte, ETag, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("get %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return nil, "", fmt.Errorf("get %s: %w", key, ErrNotFound)
	}
	return bytes.Clone(o.body), o.etag, nil
}

// Put implements Store.
func (m *Memory) Put(ctx context.Context, key string, body []byte, opt PutOptions) (ETag, error) {
	if err := opt.check(key); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("put %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, held := m.objects[key]
	if opt.IfNoneMatch && held {
		return "", fmt.Errorf("put %s: %w", key, ErrExists)
	}
	if opt.IfMatch != "" && (!held || was.etag != opt.IfMatch) {
		return "", fmt.Errorf("put %s: %w", key, ErrChanged)
	}
	m.version++
	etag := ETag(fmt.Sprintf("v%d", m.version))
	m.objects[key] = memoryObject{body: bytes.Clone(body), etag: etag}
	return etag, nil
}

// List implements Store.
func (m *Memory) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Entry
	for key, o := range m.objects {
		if strings.HasPrefix(key, prefix) {
			out = append(out, Entry{Key: key, Size: int64(len(o.body)), ETag: o.etag})
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}
