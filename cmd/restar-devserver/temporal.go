package main

import (
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	clusterName = "active"
	// pollRPS lifts the default of 20 task polls per shard and second, which
	// makes every hop of a workflow wait up to 50 ms.
	pollRPS = 2000
	// joinTimeout bounds the server's own start.
	joinTimeout = 30 * time.Second
)

// startTemporal runs the four services of a Temporal server in this process.
// It returns when they serve.
func startTemporal(sqlCfg *config.SQL, p ports, l *slog.Logger) (temporal.Server, error) {
	srv, err := temporal.NewServer(
		temporal.WithConfig(serverConfig(sqlCfg, p)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(map[primitives.ServiceName]static.Hosts{
			primitives.FrontendService: static.SingleLocalHost(address(p.grpc)),
			primitives.HistoryService:  static.SingleLocalHost(address(p.history)),
			primitives.MatchingService: static.SingleLocalHost(address(p.matching)),
			primitives.WorkerService:   static.SingleLocalHost(address(p.internal)),
		}),
		temporal.WithLogger(serverLog{l}),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
		temporal.WithDynamicConfigClient(dynamic()),
	)
	if err != nil {
		return nil, fmt.Errorf("configure the Temporal server: %w", err)
	}
	if err := srv.Start(); err != nil {
		return nil, fmt.Errorf("start the Temporal server: %w", err)
	}
	return srv, nil
}

func serverConfig(sqlCfg *config.SQL, p ports) *config.Config {
	const store, disabled = "sqlite", "disabled"
	c := &config.Config{
		Persistence: config.Persistence{
			DefaultStore: store, VisibilityStore: store, NumHistoryShards: shards,
			DataStores: map[string]config.DataStore{store: {SQL: sqlCfg}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
				Enabled: true, InitialFailoverVersion: 1,
				RPCAddress: address(p.grpc), HTTPAddress: address(p.frontendHTTP),
			}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			"frontend": service(p.grpc, p.frontendHTTP), "history": service(p.history, 0),
			"matching": service(p.matching, 0), "worker": service(p.internal, 0),
		},
		Archival: config.Archival{
			History: config.HistoryArchival{State: disabled}, Visibility: config.VisibilityArchival{State: disabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: disabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
		PublicClient: config.PublicClient{HostPort: address(p.grpc)},
	}
	c.Global.Membership = config.Membership{MaxJoinDuration: joinTimeout, BroadcastAddress: host}
	return c
}

func service(grpc, http int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: grpc, BindOnIP: host, HTTPPort: http}}
}

// dynamic are the settings that differ from the server's defaults.
func dynamic() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   pollRPS,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      pollRPS,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): pollRPS,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():   pollRPS,
		// One partition: strict order within a priority, fewer pollers.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// Two runs on one fleet share it.
		dynamicconfig.MatchingEnableFairness.Key(): true,
		// The UI's queries are refused with HTTP 429 while another is buffered.
		dynamicconfig.MaxBufferedQueryCount.Key():                        32,
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key():                 8096,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 100,
		dynamicconfig.WorkflowPauseEnabled.Key():                         true,
		// Cancellation is pushed to workers rather than waiting for a heartbeat.
		dynamicconfig.WorkerCommandsEnabled.Key():             true,
		dynamicconfig.EnableCancelActivityWorkerCommand.Key(): true,
	}
}
