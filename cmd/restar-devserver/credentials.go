package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// accessKey names the only S3 account; its secret is per data folder.
const accessKey = "restar"

// secretBytes is the entropy of a generated secret: 32 bytes, as HMAC-SHA256
// (the request signature) uses no more.
const secretBytes = 32

type keyPair struct {
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

// loadKeys returns the folder's S3 credentials, generating them once. The file
// is readable by its owner only.
func loadKeys(dir string) (keyPair, error) {
	path := filepath.Join(dir, "credentials.json")
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKeys(path)
	}
	if err != nil {
		return keyPair{}, usagef("credentials %s cannot be read (%v); fix its permissions", path, err)
	}
	var k keyPair
	if err := json.Unmarshal(body, &k); err != nil || k.AccessKey == "" || k.SecretKey == "" {
		return keyPair{}, usagef("credentials %s hold no access_key and secret_key; delete the file to generate new ones", path)
	}
	return k, os.Chmod(path, 0o600)
}

func newKeys(path string) (keyPair, error) {
	raw := make([]byte, secretBytes)
	if _, err := rand.Read(raw); err != nil {
		return keyPair{}, fmt.Errorf("generate S3 secret: %w", err)
	}
	k := keyPair{AccessKey: accessKey, SecretKey: hex.EncodeToString(raw)}
	body, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return keyPair{}, err
	}
	return k, writeAtomic(path, append(body, '\n'), 0o600)
}
