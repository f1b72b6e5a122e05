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
      {"store-idgen", "store-id-generator", "/\"store-idgen\""},
      {"\xffsys-scfg", "system-span-config", "/SystemSpanConfigKeys"}};
  enum What : unsigned char {
    bootstrap_version,
    descriptor_id_generator,
    node_id_generator,
    range_id_generator,
    store_id_generator,
    system_span_config,
  };
  static constexpr auto layout() {
    return record(system_area, field<OneOf<whats>>("what", &SystemKey::what, "what is stored"));
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
struct PathKeyspace : Decimal<8> {
  static bool read(Reader& reader, KeyspaceId& keyspace) {
    const size_t start = reader.offset();
    if (!Decimal<8>::read(reader, keyspace)) return false;
    return keyspace.value <= keyspace_id_max || reader.fail("number too large", start);
  }
  static const char* invalid(KeyspaceId keyspace) {
    return keyspace.value <= keyspace_id_max ? nullptr : "a keyspace id is at most 16777215";
  }
};

template <class Record>
constexpr auto path_id_field(KeyspaceId Record::*member) {
  return field<PathKeyspace>("keyspace", member, "keyspace id, the tenant");
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

}  // namespace trellis
