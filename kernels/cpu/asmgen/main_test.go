package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCommittedAssemblyIsWhatTheGeneratorWrites(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from the generator's output: run go generate ./kernels/cpu", name)
		}
	}
}
