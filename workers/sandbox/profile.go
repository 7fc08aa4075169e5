package sandbox

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// profile is a kind of zygote: what it has imported before calls are forked from it. The lite one is small, so a fork of it
// copies few pages; the full one has everything that was asked for. Which one serves a call is a pure function of its text,
// and decides nothing but its cost.
type profile struct {
	name    string
	preload []string
}

// The names of the profiles, as statuses and results give them.
const (
	Small = "lite"
	Full  = "full"
)

// libraryRoot is where Debian keeps what is not of the standard library.
const libraryRoot = "/usr/lib/python3/dist-packages/"

// profiles splits a preload list: the modules of the standard library, then all of them. Without libraries there is one.
func profiles(preload []string) (list []profile, libraries map[string]bool) {
	libraries = map[string]bool{}
	var standard []string
	for _, module := range preload {
		root, _, _ := strings.Cut(module, ".")
		if isLibrary(root) {
			libraries[root] = true
			continue
		}
		standard = append(standard, module)
	}
	list = []profile{{Small, standard}}
	if len(libraries) > 0 {
		list = append(list, profile{Full, preload})
	}
	for user, used := range userOf {
		if libraries[used] {
			libraries[user] = true
		}
	}
	return list, libraries
}

// userOf names libraries that come with others: importing them alone is as good a reason to take the zygote that has both.
var userOf = map[string]string{"mpmath": "sympy"}

func isLibrary(root string) bool {
	for _, suffix := range []string{"", ".py"} {
		if _, err := os.Stat(libraryRoot + root + suffix); err == nil {
			return true
		}
	}
	return false
}

// mentions reports whether a program has one of the names as a word. It reads comments and strings as code: a wrong guess
// costs some pages, or an import from disk.
func mentions(code string, names map[string]bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(names)), func(name string) bool { return hasWord(code, name) })
}

func hasWord(text, word string) bool {
	for {
		i := strings.Index(text, word)
		if i < 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || !identifier(text[i-1])) && (end == len(text) || !identifier(text[end])) {
			return true
		}
		text = text[end:]
	}
}

func identifier(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
