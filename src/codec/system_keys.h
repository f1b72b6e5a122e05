// System keys: 04. What the cluster as a whole knows: id generators, nodes, time series (seed 002,
// CockroachDB), keyspaces and their GC state (seed 000, the paths of PD).
#pragma once

#include "base/strong_id.h"
#include "codec/field_codecs.h"

namespace trellis {

inline constexpr Literal system_area = literal("area", "\x04", "system keys", "/System");

// | 04 | 00 'liveness-' | node uvarint |
struct NodeLivenessKey {
  NodeId node;
  static constexpr std::string_view kind = "system.node_liveness";
  static constexpr auto layout() {
    return record(system_area, literal("table", "\0liveness-", "node liveness", "/NodeLiveness"),
                  field<OrderedUvarint>("node", &NodeLivenessKey::node, "node id"));
  }
};

// | 04 | one of the words |
struct SystemKey {
  unsigned char what;
  static constexpr std::string_view kind = "system.key";
  static constexpr Word whats[] = {
      {"bootstrap-version", "bootstrap-version", "/\"bootstrap-version\""},
      {"desc-idgen", "descriptor-id-generator", "/\"desc-idgen\""},
      {"node-idgen", "node-id-generator", "/\"node-idgen\""},
      {"range-idgen", "range-id-generator", "/\"range-idgen\""},
      {"redis-idgen", "redis-version-generator", "/\"redis-idgen\""},
      {"store-idgen", "store-id-generator", "/\"store-idgen\""},
      {"\xffsys-scfg", "system-span-config", "/SystemSpanConfigKeys"}};
  enum What : unsigned char {
    bootstrap_version,
    descriptor_id_generator,
    node_id_generator,
    range_id_generator,
    redis_version_generator,
    store_id_generator,
    system_span_config,
  };
  static constexpr auto layout() {
    return record(system_area, field<OneOf<whats>>("what", &SystemKey::what, "what is stored"));
  }
};

// | 04 | 'range-log/' | sequence u64 |
struct RangeLogKey {
  uint64_t sequence;
  static constexpr std::string_view kind = "system.range_log";
  static constexpr auto layout() {
    return record(system_area, literal("table", "range-log/", "splits and merges", "/RangeLog"),
                  field<BigEndian<8>>("sequence", &RangeLogKey::sequence, "of the entry"));
  }
};

// | 04 | 'status-node-' | node uvarint |
struct NodeStatusKey {
  NodeId node;
  static constexpr std::string_view kind = "system.node_status";
  static constexpr auto layout() {
    return record(system_area, literal("table", "status-node-", "status of a node", "/StatusNode"),
                  field<OrderedUvarint>("node", &NodeStatusKey::node, "node id"));
  }
};

// | 04 | 'system-version/' | name bytes |
struct SystemVersionKey {
  ByteView name;
  static constexpr std::string_view kind = "system.version";
  static constexpr auto layout() {
    return record(system_area,
                  literal("table", "system-version/", "migrations", "/\"system-version/\""),
                  field<Remaining>("name", &SystemVersionKey::name, "name of the migration"));
  }
};

// | 04 | 'tsd' | name escaped | resolution varint | slot varint | source bytes |
struct TimeSeriesKey {
  ByteView name;
  int64_t resolution;  // 1: samples of 10 s in slots of an hour; 2: of 30 min in slots of a day
  int64_t slot;
  ByteView source;
  static constexpr std::string_view kind = "system.time_series";
  static constexpr auto layout() {
    return record(system_area, literal("table", "tsd", "time series", "/tsd"),
                  field<EscapedBytes>("name", &TimeSeriesKey::name, "name of the series"),
                  field<OrderedVarint>("resolution", &TimeSeriesKey::resolution,
                                       "1: 10 s samples, 2: 30 min"),
                  field<OrderedVarint>("slot", &TimeSeriesKey::slot, "time slot"),
                  field<Remaining>("source", &TimeSeriesKey::source, "node or store"));
  }
  // Source before time, and the time as a date: /System/tsd/cr.node.x/1/10s/2016-05-01T10:00:00Z
  static std::string pretty(const TimeSeriesKey& key);
};

// --- keyspaces: the paths of the seed, behind 04 ---

inline constexpr Literal keyspaces_path =
    literal("table", "/keyspaces/", "keyspace management", "/Keyspaces");

// Eight digits hold more than a keyspace id may be.
template <size_t Digits>
struct PathKeyspace : Decimal<Digits> {
  static bool read(Reader& reader, KeyspaceId& keyspace) {
    const size_t start = reader.offset();
    if (!Decimal<Digits>::read(reader, keyspace)) return false;
    return keyspace.value <= keyspace_id_max || reader.fail("number too large", start);
  }
  static const char* invalid(KeyspaceId keyspace) {
    return keyspace.value <= keyspace_id_max ? nullptr : "a keyspace id is at most 16777215";
  }
};

template <size_t Digits = 8, class Record>
constexpr auto path_id_field(KeyspaceId Record::*member) {
  return field<PathKeyspace<Digits>>("keyspace", member, "keyspace id, the tenant");
}

// | 04 | '/keyspaces/' 'meta/' | keyspace: 8 digits |
struct KeyspaceMetaKey {
  KeyspaceId keyspace;
  static constexpr std::string_view kind = "system.keyspace_meta";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "meta/", "name, state, config", "/Meta"),
                  path_id_field(&KeyspaceMetaKey::keyspace));
  }
};

// | 04 | '/keyspaces/' 'id/' | name |
struct KeyspaceNameKey {
  ByteView name;
  static constexpr std::string_view kind = "system.keyspace_id";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path, literal("path", "id/", "name to id", "/Id"),
                  field<Remaining>("name", &KeyspaceNameKey::name, "name of the keyspace"));
  }
};

// | 04 | '/keyspaces/' 'alloc_id' |
struct KeyspaceAllocatorKey {
  static constexpr std::string_view kind = "system.keyspace_alloc_id";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "alloc_id", "last id given", "/AllocId"));
  }
};

// | 04 | '/keyspaces/' 'gc_safe_point/' | keyspace: 8 digits |
struct KeyspaceGcSafePointKey {
  KeyspaceId keyspace;
  static constexpr std::string_view kind = "system.gc_safe_point";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "gc_safe_point/", "garbage up to there may go", "/GcSafePoint"),
                  path_id_field(&KeyspaceGcSafePointKey::keyspace));
  }
};

// | 04 | '/keyspaces/' 'service_safe_point/' | keyspace: 8 digits | '/' | service |
struct KeyspaceServiceSafePointKey {
  KeyspaceId keyspace;
  ByteView service;
  static constexpr std::string_view kind = "system.service_safe_point";
  static constexpr auto layout() {
    return record(
        system_area, keyspaces_path,
        literal("path", "service_safe_point/", "a service's hold on garbage", "/ServiceSafePoint"),
        path_id_field(&KeyspaceServiceSafePointKey::keyspace), literal("separator", "/", ""),
        field<Remaining>("service", &KeyspaceServiceSafePointKey::service, "who holds it"));
  }
};

// --- keyspaces: what PD has no path for ---

// | 04 | '/keyspaces/' 'tidb/' | keyspace: digits | '/tidb/store/gcworker/saved_safe_point' |
// Where TiDB keeps it, hence the path.
struct KeyspaceTxnSafePointKey {
  KeyspaceId keyspace;
  static constexpr std::string_view kind = "system.txn_safe_point";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "tidb/", "no transaction reads before it", "/TxnSafePoint"),
                  path_id_field<1>(&KeyspaceTxnSafePointKey::keyspace),
                  literal("file", "/tidb/store/gcworker/saved_safe_point", ""));
  }
};

// | 04 | '/keyspaces/' 'token/' | keyspace: 8 digits | '/' | token id |
struct KeyspaceTokenKey {
  KeyspaceId keyspace;
  ByteView token;
  static constexpr std::string_view kind = "system.keyspace_token";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path, literal("path", "token/", "a token", "/Token"),
                  path_id_field(&KeyspaceTokenKey::keyspace), literal("separator", "/", ""),
                  field<Remaining>("token", &KeyspaceTokenKey::token, "id of the token"));
  }
};

// | 04 | '/keyspaces/' 'request/' | request id |
struct KeyspaceRequestKey {
  ByteView request;
  static constexpr std::string_view kind = "system.keyspace_request";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "request/", "what a request created", "/Request"),
                  field<Remaining>("request", &KeyspaceRequestKey::request, "id of the request"));
  }
};

// | 04 | '/keyspaces/' 'change' |
struct KeyspaceRevisionKey {
  static constexpr std::string_view kind = "system.keyspace_revision";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "change", "revision of the last change", "/Revision"));
  }
};

// | 04 | '/keyspaces/' 'change/' | revision u64 |
struct KeyspaceChangeKey {
  uint64_t revision;
  static constexpr std::string_view kind = "system.keyspace_change";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "change/", "log of administrative actions", "/Change"),
                  field<BigEndian<8>>("revision", &KeyspaceChangeKey::revision, "of the change"));
  }
};

// | 04 | '/keyspaces/' 'collector' |
struct KeyspaceCollectorKey {
  static constexpr std::string_view kind = "system.keyspace_collector";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "collector", "how fast garbage goes", "/Collector"));
  }
};

// | 04 | '/keyspaces/' 'purge/' | keyspace: 8 digits |
struct KeyspacePurgeKey {
  KeyspaceId keyspace;
  static constexpr std::string_view kind = "system.keyspace_purge";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "purge/", "how far its collection is", "/Purge"),
                  path_id_field(&KeyspacePurgeKey::keyspace));
  }
};

// | 04 | '/keyspaces/' 'restore/' | keyspace: 8 digits | '/' | part |
struct KeyspaceRestoreKey {
  KeyspaceId keyspace;
  ByteView part;  // empty: what is restored; else how far a part of it is
  static constexpr std::string_view kind = "system.keyspace_restore";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path,
                  literal("path", "restore/", "a restore that is under way", "/Restore"),
                  path_id_field(&KeyspaceRestoreKey::keyspace), literal("separator", "/", ""),
                  field<Remaining>("part", &KeyspaceRestoreKey::part, "of the restore"));
  }
};

inline constexpr Word due_job_words[] = {{"g", "garbage", "/Garbage"},
                                         {"p", "purge", "/Purge"},
                                         {"q", "request", "/Request"},
                                         {"r", "retire", "/Retire"},
                                         {"e", "expire", "/Expire"}};
enum class DueJob : unsigned char { garbage, purge, request, retire, expire };

// The due index: which keyspaces need work, and when. A keyspace that is not in it costs nothing.
// | 04 | '/keyspaces/' 'due/' | due u64, unix ms | keyspace u24 | job | detail bytes |
struct KeyspaceDueKey {
  uint64_t due_ms;
  KeyspaceId keyspace;
  DueJob job;
  ByteView detail;  // of a request: its id; of expire: where a long time ends (tenant/tenant.h)
  static constexpr std::string_view kind = "system.keyspace_due";
  static constexpr auto layout() {
    return record(system_area, keyspaces_path, literal("path", "due/", "work to do", "/Due"),
                  field<BigEndian<8>>("due", &KeyspaceDueKey::due_ms, "unix time in ms"),
                  field<BigEndian<3>>("keyspace", &KeyspaceDueKey::keyspace, "the tenant"),
                  field<OneOf<due_job_words>>("job", &KeyspaceDueKey::job, "what is to be done"),
                  field<Remaining>("detail", &KeyspaceDueKey::detail, "what the job needs"));
  }
};

}  // namespace trellis
