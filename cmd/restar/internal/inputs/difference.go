package inputs

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/restar-rl/restar/workers/recipe"
)

// Difference names the keys in which two recipes differ, with both values; empty means that they are the same.
// A key that the version of restar which stored one of them did not know stands for its default.
func Difference(held, asked recipe.Recipe) (string, error) {
	a, err := flatten(held.Completed())
	if err != nil {
		return "", err
	}
	b, err := flatten(asked.Completed())
	if err != nil {
		return "", err
	}
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	var out []string
	for k := range keys {
		if a[k] != b[k] {
			out = append(out, fmt.Sprintf("%s is %s, was %s", k, shown(b, k), shown(a, k)))
		}
	}
	sort.Strings(out)
	return strings.Join(out, "; "), nil
}

func shown(m map[string]string, k string) string {
	if v, ok := m[k]; ok {
		return v
	}
	return "absent"
}

// flatten gives every leaf of a recipe by its dotted key.
func flatten(r recipe.Recipe) (map[string]string, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber() // a seed needs all of its 64 bits
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	out := map[string]string{}
	leaves(out, "", tree)
	return out, nil
}

func leaves(out map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			leaves(out, strings.TrimPrefix(at+"."+k, "."), x)
		}
	case []any:
		for i, x := range v {
			leaves(out, fmt.Sprintf("%s[%d]", at, i), x)
		}
	default:
		out[at] = fmt.Sprintf("%v", v)
	}
}
