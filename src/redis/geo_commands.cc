#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "redis/geo.h"
#include "redis/number_text.h"
#include "redis/zset.h"

namespace trellis {
namespace {

using namespace command_flag;

// --- arguments and replies ---

Result<GeoPoint> parse_point(const Call& call, size_t i) {
  GeoPoint point;
  TRY_ASSIGN(point.longitude, call.number(i));
  TRY_ASSIGN(point.latitude, call.number(i + 1));
  if (std::abs(point.longitude) > longitude_max || std::abs(point.latitude) > latitude_max)
    return reply_with(fmt::format("ERR invalid longitude,latitude pair {:.6f},{:.6f}",
                                  point.longitude, point.latitude));
  return point;
}

Result<double> parse_unit_m(const Call& call, size_t i) {
  constexpr struct {
    std::string_view name;
    double meters;
  } units[] = {{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};
  for (const auto& [name, meters] : units)
    if (call.is_word(i, name)) return meters;
  return reply_with("ERR unsupported unit provided. please use M, KM, FT, MI");
}

Result<double> parse_length(const Call& call, size_t i, std::string_view what) {
  const auto length = parse_double(call.arg(i));
  if (!length) return reply_with(fmt::format("ERR need numeric {}", what));
  return *length;
}

// RADIUS unit
Status parse_circle(const Call& call, size_t i, GeoShape& shape) {
  TRY_ASSIGN(shape.radius, parse_length(call, i, "radius"));
  if (shape.radius < 0) return reply_with("ERR radius cannot be negative");
  TRY_ASSIGN(shape.unit_m, parse_unit_m(call, i + 1));
  return {};
}

// WIDTH HEIGHT unit
Status parse_box(const Call& call, size_t i, GeoShape& shape) {
  TRY_ASSIGN(shape.width, parse_length(call, i, "width"));
  TRY_ASSIGN(shape.height, parse_length(call, i + 1, "height"));
  if (shape.width < 0 || shape.height < 0)
    return reply_with("ERR height or width cannot be negative");
  TRY_ASSIGN(shape.unit_m, parse_unit_m(call, i + 2));
  shape.is_box = true;
  return {};
}

void reply_coordinate(Reply& reply, double value) {
  const std::string text = long_double_text(value);
  if (reply.protocol() == 2)
    reply.bulk(text);
  else
    reply.raw("," + text + "\r\n");
}
void reply_point(Reply& reply, GeoPoint point) {
  reply.array(2);
  reply_coordinate(reply, point.longitude);
  reply_coordinate(reply, point.latitude);
}
void reply_distance(Reply& reply, double distance) { reply.bulk(fmt::format("{:.4f}", distance)); }

// --- GEOADD ---

struct GeoAddOptions {
  bool nx = false;
  bool xx = false;
  bool ch = false;
};

GeoAddOptions take_geoadd_options(const Call& call, size_t& at) {
  GeoAddOptions options;
  for (; at < call.count(); at++) {
    if (call.is_word(at, "nx"))
      options.nx = true;
    else if (call.is_word(at, "xx"))
      options.xx = true;
    else if (call.is_word(at, "ch"))
      options.ch = true;
    else
      break;
  }
  return options;
}

Status geoadd(Call& call) {
  size_t at = 2;
  const GeoAddOptions options = take_geoadd_options(call, at);
  const size_t count = (call.count() - at) / 3;
  if ((call.count() - at) % 3 != 0 || (options.nx && options.xx) || count == 0)
    return syntax_error();
  std::vector<double> scores(count);
  std::vector<ByteView> members(count);
  for (size_t i = 0; i < count; i++) {
    TRY_ASSIGN(const GeoPoint point, parse_point(call, at + 3 * i));
    scores[i] = geo_score(point);
    members[i] = call.arg(at + 3 * i + 2);
  }
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::zset));
  TRY_ASSIGN(std::vector<Score> stored, zset_scores(call.keys, *key, members));
  std::unordered_map<ByteView, Score*> by_member;  // one may be named twice
  int64_t added = 0, updated = 0;
  for (size_t i = 0; i < count; i++) {
    Score& old = *by_member.emplace(members[i], &stored[i]).first->second;
    if ((old ? options.nx : options.xx) || old == scores[i]) continue;
    zset_put(call.keys, *key, members[i], scores[i], old);
    (old ? updated : added)++;
    old = scores[i];
  }
  call.reply.integer(options.ch ? added + updated : added);
  return {};
}

// --- by member ---

Status geopos(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  TRY_ASSIGN(const std::vector<Score> scores, zset_scores(call.keys, *key, call.args.subspan(2)));
  call.reply.array(scores.size());
  for (const Score score : scores) {
    if (score)
      reply_point(call.reply, geo_point(*score));
    else
      call.reply.null_array();
  }
  return {};
}

Status geohash(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  TRY_ASSIGN(const std::vector<Score> scores, zset_scores(call.keys, *key, call.args.subspan(2)));
  call.reply.array(scores.size());
  for (const Score score : scores) {
    if (score)
      call.reply.bulk(geo_hash(geo_point(*score)));
    else
      call.reply.null();
  }
  return {};
}

Status geodist(Call& call) {
  double unit_m = 1;
  if (call.count() > 5) return syntax_error();
  if (call.count() == 5) {
    TRY_ASSIGN(unit_m, parse_unit_m(call, 4));
  }
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  TRY_ASSIGN(const std::vector<Score> scores,
             zset_scores(call.keys, *key, call.args.subspan(2, 2)));
  if (scores[0] && scores[1])
    reply_distance(call.reply,
                   geo_distance_m(geo_point(*scores[0]), geo_point(*scores[1])) / unit_m);
  else
    call.reply.null();
  return {};
}

// --- GEOSEARCH and its kin ---

enum class Order : uint8_t { none, nearest_first, farthest_first };

// What a command's name says.
struct GeoForm {
  enum class Kind : uint8_t { by_point, by_member, search, search_store } kind;
  bool may_store = false;  // by STORE or STOREDIST and a key
  bool is_search() const { return kind == Kind::search || kind == Kind::search_store; }
  size_t key_at() const { return kind == Kind::search_store ? 2 : 1; }
};

struct GeoQuery {
  GeoShape shape;
  Order order = Order::none;
  uint64_t count = 0;  // 0: all
  bool any = false;
  bool with_distance = false;
  bool with_hash = false;
  bool with_point = false;
  size_t store_at = 0;  // the argument that is the key; 0: none
  bool stores_distance = false;
  // Of GEOSEARCH: what was said.
  bool from_member = false;
  bool from_point = false;
  bool by_radius = false;
};

Status take_member(Call& call, const Key& key, size_t i, GeoQuery& query) {
  query.from_member = true;
  if (!key.exists()) return {};
  TRY_ASSIGN(const Score score, zset_score(call.keys, key, call.arg(i)));
  if (!score) return reply_with("ERR could not decode requested zset member");
  query.shape.center = geo_point(*score);
  return {};
}

// Options that only GEOSEARCH and GEOSEARCHSTORE have. Says whether it was one.
Result<bool> take_search_option(Call& call, const Key& key, size_t& i, GeoQuery& query) {
  const size_t left = call.count() - i - 1;
  if (call.is_word(i, "frommember") && left >= 1 && !query.from_point) {
    TRY(take_member(call, key, i + 1, query));
    i += 1;
  } else if (call.is_word(i, "fromlonlat") && left >= 2 && !query.from_member) {
    TRY_ASSIGN(query.shape.center, parse_point(call, i + 1));
    query.from_point = true;
    i += 2;
  } else if (call.is_word(i, "byradius") && left >= 2 && !query.shape.is_box) {
    TRY(parse_circle(call, i + 1, query.shape));
    query.by_radius = true;
    i += 2;
  } else if (call.is_word(i, "bybox") && left >= 3 && !query.by_radius) {
    TRY(parse_box(call, i + 1, query.shape));
    i += 3;
  } else {
    return false;
  }
  return true;
}

// Options without anything behind them.
bool take_word(const Call& call, size_t i, GeoQuery& query) {
  if (call.is_word(i, "withdist"))
    query.with_distance = true;
  else if (call.is_word(i, "withhash"))
    query.with_hash = true;
  else if (call.is_word(i, "withcoord"))
    query.with_point = true;
  else if (call.is_word(i, "any"))
    query.any = true;
  else if (call.is_word(i, "asc"))
    query.order = Order::nearest_first;
  else if (call.is_word(i, "desc"))
    query.order = Order::farthest_first;
  else
    return false;
  return true;
}

Status take_geo_options(Call& call, const Key& key, const GeoForm& form, size_t first,
                        GeoQuery& query) {
  for (size_t i = first; i < call.count(); i++) {
    const bool has_next = i + 1 < call.count();
    if (take_word(call, i, query)) continue;
    if (call.is_word(i, "count") && has_next) {
      TRY_ASSIGN(const int64_t count, call.integer(++i));
      if (count <= 0) return reply_with("ERR COUNT must be > 0");
      query.count = static_cast<uint64_t>(count);
    } else if (form.may_store && has_next &&
               (call.is_word(i, "store") || call.is_word(i, "storedist"))) {
      query.stores_distance = call.is_word(i, "storedist");
      query.store_at = ++i;
    } else if (form.kind == GeoForm::Kind::search_store && call.is_word(i, "storedist")) {
      query.stores_distance = true;
    } else {
      bool taken = false;
      if (form.is_search()) {
        TRY_ASSIGN(taken, take_search_option(call, key, i, query));
      }
      if (!taken) return syntax_error();
    }
  }
  return {};
}

Status check_query(const Call& call, const GeoForm& form, const GeoQuery& query) {
  if (query.store_at != 0 && (query.with_distance || query.with_hash || query.with_point))
    return reply_with(
        fmt::format("ERR {} is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
                    form.is_search() ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS"));
  const std::string_view name = shown(call.arg(0));
  if (form.is_search() && !query.from_member && !query.from_point)
    return reply_with(
        fmt::format("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {}", name));
  if (form.is_search() && !query.by_radius && !query.shape.is_box)
    return reply_with(
        fmt::format("ERR exactly one of BYRADIUS and BYBOX can be specified for {}", name));
  if (query.any && query.count == 0)
    return reply_with("ERR the ANY argument requires COUNT argument");
  return {};
}

Result<GeoQuery> parse_query(Call& call, const Key& key, const GeoForm& form) {
  GeoQuery query;
  size_t options_at = form.key_at() + 1;
  if (form.kind == GeoForm::Kind::search_store) query.store_at = 1;
  if (form.kind == GeoForm::Kind::by_point) {
    TRY_ASSIGN(query.shape.center, parse_point(call, 2));
    TRY(parse_circle(call, 4, query.shape));
    options_at = 6;
  } else if (form.kind == GeoForm::Kind::by_member) {
    TRY(take_member(call, key, 2, query));
    if (key.exists()) TRY(parse_circle(call, 3, query.shape));
    options_at = 5;
  }
  TRY(take_geo_options(call, key, form, options_at, query));
  TRY(check_query(call, form, query));
  // The nearest ones are meant.
  if (query.count != 0 && query.order == Order::none && !query.any)
    query.order = Order::nearest_first;
  return query;
}

struct FoundPlace {
  Bytes member;
  double score;
  GeoPoint point;
  double distance_m;
};

// All, or with ANY the first that there are, in the order of scores of one area after the other.
Result<std::vector<FoundPlace>> find_points(Call& call, const Key& key, const GeoQuery& query) {
  const size_t enough = query.any ? query.count : std::numeric_limits<size_t>::max();
  std::vector<FoundPlace> found;
  const auto take = [&](double score, ByteView member) {
    const GeoPoint point = geo_point(score);
    double distance_m = 0;
    if (is_inside(query.shape, point, distance_m))
      found.push_back({Bytes(member), score, point, distance_m});
    return found.size() >= enough ? Visit::stop : Visit::go_on;
  };
  for (const auto& [begin, end] : geo_intervals(query.shape)) {
    if (found.size() >= enough) break;
    TRY(call.keys.scan_scores(
        key, {.begin_score = begin, .end_score = end, .end_is_inclusive = false}, take));
  }
  return found;
}

// Leaves those that are wanted, in their order; of two that are as near, the one that was found
// first.
void arrange(std::vector<FoundPlace>& found, const GeoQuery& query) {
  if (query.order == Order::nearest_first)
    std::stable_sort(found.begin(), found.end(), [](const FoundPlace& a, const FoundPlace& b) {
      return a.distance_m < b.distance_m;
    });
  else if (query.order == Order::farthest_first)
    std::stable_sort(found.begin(), found.end(), [](const FoundPlace& a, const FoundPlace& b) {
      return a.distance_m > b.distance_m;
    });
  if (query.count != 0 && found.size() > query.count) found.resize(query.count);
}

void reply_found(Call& call, const GeoQuery& query, std::span<const FoundPlace> found) {
  const size_t options =
      (query.with_distance ? 1U : 0U) + (query.with_hash ? 1U : 0U) + (query.with_point ? 1U : 0U);
  call.reply.array(found.size());
  for (const FoundPlace& one : found) {
    if (options != 0) call.reply.array(options + 1);
    call.reply.bulk(one.member);
    if (query.with_distance) reply_distance(call.reply, one.distance_m / query.shape.unit_m);
    if (query.with_hash) call.reply.integer(static_cast<int64_t>(one.score));
    if (query.with_point) reply_point(call.reply, one.point);
  }
}

Status search(Call& call, const GeoForm& form) {
  TRY_ASSIGN(const Key* const key, call.open(form.key_at(), RedisType::zset));
  TRY_ASSIGN(const GeoQuery query, parse_query(call, *key, form));
  std::vector<FoundPlace> found;
  if (key->exists()) {
    TRY_ASSIGN(found, find_points(call, *key, query));
  }
  arrange(found, query);
  if (query.store_at == 0) {
    reply_found(call, query, found);
    return {};
  }
  std::vector<ScoredMember> members;
  for (FoundPlace& one : found)
    members.push_back({std::move(one.member),
                       query.stores_distance ? one.distance_m / query.shape.unit_m : one.score});
  TRY_ASSIGN(Key* const target, call.open(query.store_at));
  zset_replace(call.keys, *target, members);
  call.reply.integer(static_cast<int64_t>(members.size()));
  return {};
}

using GeoKind = GeoForm::Kind;
Status georadius(Call& call) { return search(call, {GeoKind::by_point, true}); }
Status georadius_ro(Call& call) { return search(call, {GeoKind::by_point}); }
Status georadiusbymember(Call& call) { return search(call, {GeoKind::by_member, true}); }
Status georadiusbymember_ro(Call& call) { return search(call, {GeoKind::by_member}); }
Status geosearch(Call& call) { return search(call, {GeoKind::search}); }
Status geosearchstore(Call& call) { return search(call, {GeoKind::search_store}); }

// With those behind STORE and STOREDIST.
template <size_t options_at>
Status find_radius_keys(Args args, std::vector<size_t>& positions) {
  positions.push_back(1);
  for (const std::string_view word : {"store", "storedist"})
    for (size_t i = options_at; i + 1 < args.size(); i++)
      if (equals_word(args[i], word)) positions.push_back(i + 1);
  return {};
}

namespace geo_table {

constexpr KeyPositions one{1, 1, 1};

const Command table[] = {
    {"geoadd", -5, write | denyoom, one, geoadd, "3.2.0", "Adds places to a sorted set."},
    {"geodist", -4, readonly, one, geodist, "3.2.0", "How far two places are from each other."},
    {"geohash", -2, readonly, one, geohash, "3.2.0", "The geohashes of places."},
    {"geopos", -2, readonly, one, geopos, "3.2.0", "Where places are."},
    {.name = "georadius",
     .arity = -6,
     .flags = write | denyoom | movablekeys,
     .keys = one,
     .handler = georadius,
     .since = "3.2.0",
     .summary = "Places around a point.",
     .find_keys = find_radius_keys<6>},
    {"georadius_ro", -6, readonly, one, georadius_ro, "3.2.10",
     "Places around a point, of which none are stored."},
    {.name = "georadiusbymember",
     .arity = -5,
     .flags = write | denyoom | movablekeys,
     .keys = one,
     .handler = georadiusbymember,
     .since = "3.2.0",
     .summary = "Places around another one.",
     .find_keys = find_radius_keys<5>},
    {"georadiusbymember_ro", -5, readonly, one, georadiusbymember_ro, "3.2.10",
     "Places around another one, of which none are stored."},
    {"geosearch", -7, readonly, one, geosearch, "6.2.0", "Places within a circle or a box."},
    {"geosearchstore",
     -8,
     write | denyoom,
     {1, 2, 1},
     geosearchstore,
     "6.2.0",
     "Stores places within a circle or a box."},
};

}  // namespace geo_table

}  // namespace

std::span<const Command> geo_commands() { return geo_table::table; }

}  // namespace trellis
