// Local keys (seed 002, CockroachDB): 01. They stay with their range or store and are never split
// from it.
//
//   01 'i' range id ...   by range id: 'r' replicated, 'u' unreplicated
//   01 'k' key ...        by a global key: descriptor, transaction record
//   01 's' ...            of this store
//   01 'z' 'k' key        lock table
#pragma once

#include "base/strong_id.h"
#include "codec/field_codecs.h"

namespace trellis {

// A whole key inside another, escaped; its pretty form is that of the inner key.
struct AddressedKey : EscapedBytes {
  static void append_pretty(std::string& out, ByteView key);
};

// A 16-byte id as escaped bytes; pretty in quotes, as CockroachDB prints it.
struct EscapedUuid {
  static constexpr bool needs_scratch = true;
  static constexpr bool number = false;
  static constexpr std::string_view form = "escaped uuid (12 ... 00 01)";
  static void append(Bytes& out, const Uuid& uuid);
  static bool read(Reader& reader, Uuid& uuid);
  static std::string text(const Uuid& uuid) { return to_string(uuid); }
  static void append_pretty(std::string& out, const Uuid& uuid) {
    out += "/\"" + to_string(uuid) + '"';
  }
  static Status parse(std::string_view text, TextArena& arena, Uuid& uuid) {
    return UuidBytes::parse(text, arena, uuid);
  }
  static const char* invalid(const Uuid&) { return nullptr; }
};

struct QuotedUuid : UuidBytes {
  static void append_pretty(std::string& out, const Uuid& uuid) {
    EscapedUuid::append_pretty(out, uuid);
  }
};

inline constexpr Literal local_area = literal("area", "\x01", "local keys", "/Local");
inline constexpr Literal local_by_range_id = literal("class", "i", "by range id", "/RangeID");
inline constexpr Literal local_by_key = literal("class", "k", "by a global key", "/Range");
inline constexpr Literal local_by_store = literal("class", "s", "of this store", "/Store");
inline constexpr Literal local_replicated = literal("infix", "r", "replicated", "/r");
inline constexpr Literal local_unreplicated = literal("infix", "u", "unreplicated", "/u");

template <class Record>
constexpr auto range_id_field(RangeId Record::*member) {
  return field<OrderedUvarint>("range", member, "range id");
}
template <class Record>
constexpr auto addressed_key_field(ByteView Record::*member) {
  return field<AddressedKey>("key", member, "the global key that it belongs to");
}

// | 01 'i' | range uvarint | 'r' | suffix 4 |
struct RangeReplicatedKey {
  RangeId range;
  unsigned char what;
  static constexpr std::string_view kind = "local.range_replicated";
  static constexpr Word whats[] = {{"lgc-", "gc-threshold", "/RangeGCThreshold"},
                                   {"rask", "applied-state", "/RangeAppliedState"},
                                   {"rgch", "gc-hint", "/RangeGCHint"},
                                   {"rll-", "lease", "/RangeLease"},
                                   {"rprs", "prior-read-summary", "/RangePriorReadSummary"},
                                   {"rver", "version", "/RangeVersion"},
                                   {"fzn-", "frozen-status (dead)", "\"fzn-\""},
                                   {"rftt", "truncated-state (dead)", "/RaftTruncatedState"},
                                   {"stat", "stats (dead)", "/RangeStats"},
                                   {"tst-", "txn-span-gc-threshold (dead)", "\"tst-\""}};
  static constexpr auto layout() {
    return record(local_area, local_by_range_id, range_id_field(&RangeReplicatedKey::range),
                  local_replicated,
                  field<OneOf<whats>>("what", &RangeReplicatedKey::what, "what is stored"));
  }
};

// | 01 'i' | range uvarint | 'r' 'abc-' | transaction: escaped uuid |
struct AbortSpanKey {
  RangeId range;
  Uuid transaction;
  static constexpr std::string_view kind = "local.abort_span";
  static constexpr auto layout() {
    return record(local_area, local_by_range_id, range_id_field(&AbortSpanKey::range),
                  local_replicated, literal("suffix", "abc-", "abort span", "/AbortSpan"),
                  field<EscapedUuid>("transaction", &AbortSpanKey::transaction));
  }
};

// | 01 'i' | range uvarint | 'u' | suffix 4 |
struct RangeUnreplicatedKey {
  RangeId range;
  unsigned char what;
  static constexpr std::string_view kind = "local.range_unreplicated";
  static constexpr Word whats[] = {{"rftb", "tombstone", "/RangeTombstone"},
                                   {"rfth", "raft-hard-state", "/RaftHardState"},
                                   {"rftr", "raft-replica-id", "\"rftr\""},
                                   {"rftt", "raft-truncated-state", "/RaftTruncatedState"},
                                   {"rlrt", "last-replica-gc", "/RangeLastReplicaGCTimestamp"}};
  static constexpr auto layout() {
    return record(local_area, local_by_range_id, range_id_field(&RangeUnreplicatedKey::range),
                  local_unreplicated,
                  field<OneOf<whats>>("what", &RangeUnreplicatedKey::what, "what is stored"));
  }
};

// | 01 'i' | range uvarint | 'u' 'rftl' | index u64 |
struct RaftLogKey {
  RangeId range;
  uint64_t index;
  struct IndexCodec : BigEndian<8> {
    static void append_pretty(std::string& out, uint64_t index) {
      out += "/logIndex:" + std::to_string(index);
    }
  };
  static constexpr std::string_view kind = "local.raft_log";
  static constexpr auto layout() {
    return record(local_area, local_by_range_id, range_id_field(&RaftLogKey::range),
                  local_unreplicated, literal("suffix", "rftl", "log entry", "/RaftLog"),
                  field<IndexCodec>("index", &RaftLogKey::index, "log index"));
  }
};

// | 01 'i' | range uvarint | 'u' 'rltu' | transaction: escaped uuid |
struct SharedLocksLatchKey {
  RangeId range;
  Uuid transaction;
  static constexpr std::string_view kind = "local.shared_locks_latch";
  static constexpr auto layout() {
    return record(local_area, local_by_range_id, range_id_field(&SharedLocksLatchKey::range),
                  local_unreplicated,
                  literal("suffix", "rltu", "latch of a transaction's replicated shared locks",
                          "/ReplicatedSharedLocksTransactionLatch"),
                  field<EscapedUuid>("transaction", &SharedLocksLatchKey::transaction));
  }
};

// | 01 'k' | key escaped |: where everything that is local to a key starts; a bound, not stored.
struct RangeLocalPrefix {
  ByteView key;
  static constexpr std::string_view kind = "local.range_prefix";
  static constexpr auto layout() {
    return record(local_area, local_by_key, addressed_key_field(&RangeLocalPrefix::key));
  }
};

// | 01 'k' | key escaped | 'rdsc' |
struct RangeDescriptorKey {
  ByteView key;
  static constexpr std::string_view kind = "local.range_descriptor";
  static constexpr auto layout() {
    return record(
        local_area, local_by_key, addressed_key_field(&RangeDescriptorKey::key),
        literal("suffix", "rdsc", "descriptor of the range that starts there", "/RangeDescriptor"));
  }
};

// | 01 'k' | key escaped | 'prbe' |
struct RangeProbeKey {
  ByteView key;
  static constexpr std::string_view kind = "local.range_probe";
  static constexpr auto layout() {
    return record(local_area, local_by_key, addressed_key_field(&RangeProbeKey::key),
                  literal("suffix", "prbe", "probe", "/RangeProbe"));
  }
};

// | 01 'k' | key escaped | 'qlpt' | queue bytes |
struct QueueLastProcessedKey {
  ByteView key;
  ByteView queue;
  static constexpr std::string_view kind = "local.queue_last_processed";
  static constexpr auto layout() {
    return record(
        local_area, local_by_key, addressed_key_field(&QueueLastProcessedKey::key),
        literal("suffix", "qlpt", "when a queue last saw the range", "/QueueLastProcessed"),
        field<Remaining>("queue", &QueueLastProcessedKey::queue, "name of the queue"));
  }
};

// | 01 'k' | key escaped | 'txn-' | transaction uuid |
struct TransactionKey {
  ByteView key;
  Uuid transaction;
  static constexpr std::string_view kind = "local.transaction";
  static constexpr auto layout() {
    return record(local_area, local_by_key, addressed_key_field(&TransactionKey::key),
                  literal("suffix", "txn-", "transaction record", "/Transaction"),
                  field<QuotedUuid>("transaction", &TransactionKey::transaction));
  }
};

// | 01 's' | suffix 4 |
struct StoreKey {
  enum What : unsigned char { cluster_version, gossip, clock_upper_bound, ident, last_up };
  unsigned char what;
  static constexpr std::string_view kind = "local.store";
  static constexpr Word whats[] = {{"cver", "cluster-version", "/clusterVersion"},
                                   {"goss", "gossip-bootstrap", "/gossipBootstrap"},
                                   {"hlcu", "clock-upper-bound", "\"hlcu\""},
                                   {"iden", "ident", "/storeIdent"},
                                   {"uptm", "last-up", "\"uptm\""}};
  static constexpr auto layout() {
    return record(local_area, local_by_store,
                  field<OneOf<whats>>("what", &StoreKey::what, "what is stored"));
  }
};

// | 01 's' 'ntmb' | node u32 |
struct StoreNodeTombstoneKey {
  NodeId node;
  struct NodeCodec : BigEndian<4> {
    static void append_pretty(std::string& out, NodeId node) {
      out += "/n" + std::to_string(node.value);
    }
  };
  static constexpr std::string_view kind = "local.node_tombstone";
  static constexpr auto layout() {
    return record(local_area, local_by_store,
                  literal("suffix", "ntmb", "a node that is gone for good", "/nodeTombstone"),
                  field<NodeCodec>("node", &StoreNodeTombstoneKey::node, "node id"));
  }
};

// | 01 's' 'stng' | setting bytes |
struct StoreCachedSettingKey {
  ByteView setting;
  static constexpr std::string_view kind = "local.cached_setting";
  static constexpr auto layout() {
    return record(local_area, local_by_store,
                  literal("suffix", "stng", "cached setting", "/cachedSettings"),
                  field<Remaining>("setting", &StoreCachedSettingKey::setting));
  }
};

// | 01 's' 'load' | number u64 |: what is loaded and not committed (rocksdb_engine/table_load.h)
struct StoreLoadKey {
  uint64_t number;
  static constexpr std::string_view kind = "local.load";
  static constexpr auto layout() {
    return record(local_area, local_by_store,
                  literal("suffix", "load", "an interval that is being loaded", "/load"),
                  field<BigEndian<8>>("number", &StoreLoadKey::number, "of the load"));
  }
};

// | 01 's' 'loqr' | recovery uuid |
struct StoreRecoveryKey {
  Uuid recovery;
  static constexpr std::string_view kind = "local.quorum_recovery";
  static constexpr auto layout() {
    return record(local_area, local_by_store,
                  literal("suffix", "loqr", "applied loss-of-quorum recovery",
                          "/lossOfQuorumRecovery/applied"),
                  field<UuidBytes>("recovery", &StoreRecoveryKey::recovery));
  }
};

// | 01 'z' 'k' | key escaped |
struct LockTableKey {
  ByteView key;
  static constexpr std::string_view kind = "local.lock";
  static constexpr auto layout() {
    return record(local_area, literal("class", "z", "lock table", "/Lock"),
                  literal("strength", "k", "intent", "/Intent"),
                  addressed_key_field(&LockTableKey::key));
  }
};

}  // namespace trellis
