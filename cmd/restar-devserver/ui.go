package main

import (
	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uiopts "github.com/temporalio/ui-server/v2/server/server_options"
)

// newUI is the Temporal Web UI; its assets are in the binary and it asks no
// foreign host for anything.
func newUI(p ports) *uiserver.Server {
	return uiserver.NewServer(uiopts.WithConfigProvider(&uiconfig.Config{
		Host: host, Port: p.ui, TemporalGRPCAddress: address(p.grpc), EnableUI: true,
		DefaultNamespace: namespace, HideLogs: true, DisableNewsFetch: true,
		CORS: uiconfig.CORS{CookieInsecure: true}, // plain HTTP on loopback
	}))
}
