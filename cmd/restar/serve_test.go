package main

import "testing"

func TestWrongCommandLinesOfServeAndChatAreTheUsersToMend(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"serve without a folder": {[]string{"serve"}, "1 arg"},
		"serve nothing":          {[]string{"serve", "/nowhere", "--addr", "127.0.0.1:0"}, "/nowhere holds no config.json"},
		"unknown flag":           {[]string{"serve", "/nowhere", "--port", "1"}, "port"},
		"wrong number":           {[]string{"serve", "/nowhere", "--kv-blocks", "many"}, "kv-blocks"},
		"wrong precision":        {[]string{"serve", "/nowhere", "--addr", "127.0.0.1:0", "--precision", "fp8"}, "--precision"},
		"chat with two":          {[]string{"chat", "a", "b"}, "1 arg"},
		"chat with nothing":      {[]string{"chat", "/nowhere"}, "/nowhere holds no config.json"},
		"chat too hot":           {[]string{"chat", "/nowhere", "--temperature", "9"}, "--temperature"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := run(t, c.args...)
			wantUserError(t, code, out, c.want)
		})
	}
}
