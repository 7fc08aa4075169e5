package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"
)

// A bundle is a folder of data objects and a manifest that makes them one
// thing: the manifest is written last, once, and lists every object and its
// hash. Data objects carry their hash in their name, so two writers of one
// bundle can never spoil each other's data; the manifest decides between them.

// manifestFormat names the layout that this package writes and reads.
const manifestFormat = "restar-bundle-1"

// transfers is how many objects of a bundle move at a time.
const transfers = 4

// hashInName is how many hex digits of the content's SHA-256 its key shows:
// 64 bits, against confusion of versions; integrity is the manifest's matter.
const hashInName = 16

// Blob is one named piece of a bundle, usually an encoded safetensors file.
type Blob struct {
	Name string
	Data []byte
}

// Object is a blob as its manifest lists it. Size is in bytes, SHA256 in hex.
type Object struct {
	Name   string `json:"name"`
	Key    string `json:"key"` // relative to the bundle's folder
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Manifest lists a bundle's objects in the order they were given, and what its
// writer wanted to remember beside them.
type Manifest struct {
	Format  string            `json:"format"`
	Meta    map[string]string `json:"meta"`
	Objects []Object          `json:"objects"`
}

func manifestKey(folder string) string { return folder + "/manifest.json" }

func describe(blobs []Blob, meta map[string]string) (Manifest, error) {
	m := Manifest{Format: manifestFormat, Meta: meta}
	seen := map[string]bool{}
	for _, b := range blobs {
		if b.Name == "" || seen[b.Name] {
			return m, fmt.Errorf("blob name %q is empty or given twice, want distinct names", b.Name)
		}
		seen[b.Name] = true
		sum := sha256.Sum256(b.Data)
		hash := hex.EncodeToString(sum[:])
		m.Objects = append(m.Objects, Object{
			Name: b.Name, Size: int64(len(b.Data)), SHA256: hash,
			Key: "data/" + segment(strings.TrimSuffix(b.Name, ".safetensors")) + "." + hash[:hashInName] + ".safetensors",
		})
	}
	return m, nil
}

// writeBundle makes the bundle in folder unless there is one. It returns the
// manifest that holds afterwards and whether it is this call's.
func writeBundle(ctx context.Context, s Store, folder string, blobs []Blob, meta map[string]string) (Manifest, bool, error) {
	there, err := readManifest(ctx, s, folder)
	if err == nil || !errors.Is(err, ErrNotFound) {
		return there, false, err
	}
	m, err := describe(blobs, meta)
	if err != nil {
		return Manifest{}, false, fmt.Errorf("write %s: %w", folder, err)
	}
	if err := putData(ctx, s, folder, m, blobs); err != nil {
		return Manifest{}, false, err
	}
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Manifest{}, false, fmt.Errorf("encode %s: %w", manifestKey(folder), err)
	}
	winner, won, err := PutOnce(ctx, s, manifestKey(folder), append(body, '\n'))
	if err != nil {
		return Manifest{}, false, err
	}
	m, err = parseManifest(folder, winner)
	return m, won, err
}

func putData(ctx context.Context, s Store, folder string, m Manifest, blobs []Blob) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(transfers)
	for i, o := range m.Objects {
		g.Go(func() error {
			_, err := s.Put(ctx, folder+"/"+o.Key, blobs[i].Data, PutOptions{IfNoneMatch: true})
			if errors.Is(err, ErrExists) { // the name carries the hash: same content
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

func readManifest(ctx context.Context, s Store, folder string) (Manifest, error) {
	body, _, err := s.Get(ctx, manifestKey(folder))
	if err != nil {
		return Manifest{}, err
	}
	return parseManifest(folder, body)
}

func parseManifest(folder string, body []byte) (Manifest, error) {
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(&m)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("text after the JSON value")
		}
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w: %v", manifestKey(folder), ErrCorrupt, err)
	}
	if m.Format != manifestFormat {
		return m, fmt.Errorf("%s: %w: format %q, want %q", manifestKey(folder), ErrCorrupt, m.Format, manifestFormat)
	}
	return m, nil
}

// readBundle fetches every object and compares size and hash.
func readBundle(ctx context.Context, s Store, folder string) (Manifest, []Blob, error) {
	m, err := readManifest(ctx, s, folder)
	if err != nil {
		return m, nil, err
	}
	blobs := make([]Blob, len(m.Objects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(transfers)
	for i, o := range m.Objects {
		g.Go(func() error {
			data, err := readObject(ctx, s, folder+"/"+o.Key, o)
			blobs[i] = Blob{Name: o.Name, Data: data}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return m, nil, err
	}
	return m, blobs, nil
}

func readObject(ctx context.Context, s Store, key string, want Object) ([]byte, error) {
	data, _, err := s.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%s is listed in its manifest but missing: %w", key, ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != want.SHA256 || int64(len(data)) != want.Size {
		return nil, fmt.Errorf("%s: %w: %d bytes with sha256 %s, want %d bytes with %s", key, ErrCorrupt, len(data), got, want.Size, want.SHA256)
	}
	return data, nil
}

// deleteBundle removes the manifest first: what is left of an interrupted
// deletion is an unlisted folder, never a manifest without its objects.
func deleteBundle(ctx context.Context, s Store, folder string) error {
	if err := s.Delete(ctx, manifestKey(folder)); err != nil {
		return err
	}
	entries, err := s.List(ctx, folder+"/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.Delete(ctx, e.Key); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes what interrupted deletions left under prefix: folders without a
// manifest whose names come before that of the oldest bundle kept.
func sweep(ctx context.Context, s Store, prefix, oldest string) error {
	folders, err := listBundles(ctx, s, prefix)
	for _, f := range folders {
		if f.manifest || f.name >= oldest {
			continue
		}
		if err := deleteBundle(ctx, s, prefix+f.name); err != nil {
			return err
		}
	}
	return err
}

// bundleState is one folder of a listing.
type bundleState struct {
	name     string // path segment below the listed prefix
	manifest bool
	sizes    map[string]int64 // of every object, by key relative to the folder
}

// listBundles groups the objects under prefix (ending in "/") by folder, in
// ascending order of name.
func listBundles(ctx context.Context, s Store, prefix string) ([]bundleState, error) {
	entries, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var out []bundleState
	for _, e := range entries {
		name, rest, ok := strings.Cut(strings.TrimPrefix(e.Key, prefix), "/")
		if !ok {
			return nil, fmt.Errorf("%s: %w: an object where folders are expected", e.Key, ErrCorrupt)
		}
		if n := len(out); n == 0 || out[n-1].name != name {
			out = append(out, bundleState{name: name, sizes: map[string]int64{}})
		}
		b := &out[len(out)-1]
		b.sizes[rest] = e.Size
		b.manifest = b.manifest || rest == "manifest.json"
	}
	return out, nil
}

// missing names the first object that the manifest lists and the folder lacks.
func (b bundleState) missing(m Manifest) string {
	for _, o := range m.Objects {
		if size, ok := b.sizes[o.Key]; !ok || size != o.Size {
			return o.Key
		}
	}
	return ""
}
