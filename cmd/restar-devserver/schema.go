package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/config"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// namespace holds every workflow of restar.
	namespace = "restar"
	// retention keeps finished runs visible; the server's helper says one day,
	// after which the earlier links of a week-long chain would be gone.
	retention = 90 * 24 * time.Hour
	// shards is frozen into a database by its first start.
	shards = 4
	// stampTimeout bounds reading and writing the version stamp.
	stampTimeout = 10 * time.Second
)

// searchAttributes are the typed columns that runs can be listed by.
func searchAttributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{
		"RunName": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"Stage":   enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"Recipe":  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"Step":    enumspb.INDEXED_VALUE_TYPE_INT,
		"Reward":  enumspb.INDEXED_VALUE_TYPE_DOUBLE,
	}
}

// stamp is the layout of a database: the server neither checks nor migrates a
// SQLite schema, so an old file under a new server would miss tables at run
// time. It also pins the shard count, which the server cannot change.
func stamp() string {
	return fmt.Sprintf("temporal schema %s, visibility schema %s, %d shards", sqliteschema.Version, sqliteschema.VisibilityVersion, shards)
}

func sqlConfig(path string) *config.SQL {
	return &config.SQL{
		PluginName: sqliteplugin.PluginName, DatabaseName: path,
		// Attributes other than mode become PRAGMAs. One connection: more were
		// slower and met "database is locked".
		ConnectAttributes: map[string]string{
			"mode": "rwc", "journal_mode": "WAL", "synchronous": "FULL", "busy_timeout": "5000",
		},
	}
}

// openDatabase makes the database when there is none and refuses one of
// another layout. A creation that was cut short leaves its marker file and is
// begun again.
func openDatabase(path string) (*config.SQL, error) {
	cfg := sqlConfig(path)
	marker := path + ".creating"
	if err := discardUnfinished(path, marker); err != nil {
		return nil, err
	}
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, createDatabase(cfg, path, marker)
	}
	if err != nil {
		return nil, usagef("database %s cannot be opened (%v); fix its permissions", path, err)
	}
	return cfg, checkStamp(path)
}

func discardUnfinished(path, marker string) error {
	if _, err := os.Stat(marker); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return usagef("unfinished database %s cannot be removed (%v); remove it", f, err)
		}
	}
	return nil
}

func createDatabase(cfg *config.SQL, path, marker string) error {
	if err := writeAtomic(marker, nil, 0o600); err != nil {
		return err
	}
	if err := sqliteschema.SetupSchema(cfg); err != nil {
		return fmt.Errorf("create the tables of %s: %w", path, err)
	}
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, namespace, false, searchAttributes())
	if err != nil {
		return fmt.Errorf("describe namespace %s: %w", namespace, err)
	}
	ns.Detail.Config.Retention = durationpb.New(retention)
	if err := sqliteschema.CreateNamespaces(cfg, ns); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	if err := writeStamp(path); err != nil {
		return err
	}
	return os.Remove(marker)
}

func withStampDB(path string, do func(context.Context, *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stampTimeout)
	defer cancel()
	// The driver is registered by the server's SQLite plugin.
	db, err := sql.Open("sqlite", "file:"+path+"?mode=rw&_pragma=busy_timeout=5000&_pragma=synchronous=FULL")
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer db.Close()
	return do(ctx, db)
}

func writeStamp(path string) error {
	return withStampDB(path, func(ctx context.Context, db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "CREATE TABLE restar_layout (stamp TEXT NOT NULL)"); err != nil {
			return fmt.Errorf("stamp %s: %w", path, err)
		}
		if _, err := db.ExecContext(ctx, "INSERT INTO restar_layout VALUES (?)", stamp()); err != nil {
			return fmt.Errorf("stamp %s: %w", path, err)
		}
		return nil
	})
}

func checkStamp(path string) error {
	return withStampDB(path, func(ctx context.Context, db *sql.DB) error {
		var found string
		err := db.QueryRowContext(ctx, "SELECT stamp FROM restar_layout").Scan(&found)
		switch {
		case errors.Is(err, sql.ErrNoRows) || err != nil && strings.Contains(err.Error(), "no such table"):
			return usagef("database %s was not made by restar-devserver (it has no layout stamp); choose another folder with --dir", path)
		case err != nil:
			return usagef("database %s cannot be read (%v); restore it from a copy or choose another folder with --dir", path, err)
		case found != stamp():
			return usagef("database %s has layout %q, this restar-devserver needs %q; use the restar release that made it, or choose another folder with --dir", path, found, stamp())
		}
		return nil
	})
}
