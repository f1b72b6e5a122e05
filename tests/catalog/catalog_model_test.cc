// Random operations on a catalog against a simple model, on every engine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/random.h"
#include "catalog/catalog_world.h"
#include "catalog/labels.h"
#include "catalog/owners.h"
#include "catalog/roles.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Names = std::vector<std::string>;

// Few names, so that they meet.
EntityPath any_path(Random& random) {
  constexpr CatalogType types[] = {
      CatalogType::metalake, CatalogType::catalog, CatalogType::tag,
      CatalogType::schema,   CatalogType::schema,  CatalogType::table,
      CatalogType::table,    CatalogType::table,   CatalogType::fileset};
  EntityPath path{types[random.below(std::size(types))], {}};
  for (size_t depth = 1; depth <= catalog_depth(path.type); depth++)
    path.names.push_back("mcst"[depth - 1] + std::to_string(random.below(depth < 4 ? 2 : 4)));
  return path;
}

// --- the model: trees by value ---

struct Node {
  CatalogRef ref;
  uint64_t version = 1;
  bool disabled = false;
  std::map<std::pair<CatalogType, std::string>, Node> children;
  struct Dropped {
    uint64_t due_ms;
    CatalogType type;
    std::string name;
    std::vector<Node> node;  // one
  };
  std::vector<Dropped> dropped;

  Node* child(CatalogType type, const std::string& name) {
    const auto found = children.find({type, name});
    return found == children.end() ? nullptr : &found->second;
  }
  bool has(std::span<const CatalogType> types) const {
    return std::any_of(children.begin(), children.end(), [&](const auto& child) {
      return std::find(types.begin(), types.end(), child.first.first) != types.end();
    });
  }
  void forget_dropped() {
    dropped.clear();
    for (auto& [name, child] : children) child.forget_dropped();
  }
};

// The reason of the error that an operation ends with; empty: none.
class SimpleCatalog {
 public:
  Node root;

  // What the path stands in; sets the reason if it is missing or disabled.
  Node* parent(const EntityPath& path, std::string& reason) {
    Node* at = &root;
    for (size_t depth = 1; depth < path.names.size(); depth++) {
      const CatalogType type = catalog_type_at(path.type, depth);
      at = at->child(type, path.names[depth - 1]);
      const std::string word(catalog_word(type).name);
      if (at == nullptr) reason = "no_such_" + word;
      if (at != nullptr && at->disabled) reason = word + "_not_in_use";
      if (!reason.empty()) return nullptr;
    }
    return at;
  }
  Node* find(const EntityPath& path, std::string& reason, bool even_if_disabled) {
    Node* const above = parent(path, reason);
    const std::string word(catalog_word(path.type).name);
    if (reason == "no_such_schema") reason = "no_such_" + word;  // what was asked for
    if (above == nullptr) return nullptr;
    Node* const node = above->child(path.type, path.name());
    if (node == nullptr) reason = "no_such_" + word;
    if (node != nullptr && node->disabled && !even_if_disabled) reason = word + "_not_in_use";
    return reason.empty() ? node : nullptr;
  }

  std::string create(const EntityPath& path, const CatalogRef& ref) {
    std::string reason;
    Node* const above = parent(path, reason);
    if (above == nullptr) return reason;
    if (above->child(path.type, path.name()) != nullptr)
      return std::string(catalog_word(path.type).name) + "_exists";
    above->children[{path.type, path.name()}].ref = ref;
    return {};
  }

  std::string alter(const EntityPath& path, const std::string& name,
                    const std::optional<std::string>& new_schema) {
    std::string reason;
    if (find(path, reason, false) == nullptr) return reason;
    Node* const from = parent(path, reason);
    Node* to = from;
    if (new_schema) {
      to = find({CatalogType::schema, {path.names[0], path.names[1], *new_schema}}, reason, false);
      if (to == nullptr) return reason;
    }
    if ((to != from || name != path.name()) && to->child(path.type, name) != nullptr)
      return std::string(catalog_word(path.type).name) + "_exists";
    auto node = from->children.extract({path.type, path.name()});
    node.key().second = name;
    node.mapped().version++;
    to->children.insert(std::move(node));
    return {};
  }

  std::string set_in_use(const EntityPath& path, bool in_use) {
    std::string reason;
    Node* const node = find(path, reason, true);
    if (node == nullptr || node->disabled == !in_use) return reason;
    node->disabled = !in_use;
    node->version++;
    return {};
  }

  // `done`: whether it was there.
  std::string drop(const EntityPath& path, bool force, uint64_t now_ms, bool& done) {
    std::string reason;
    Node* const above = parent(path, reason);
    const CatalogType type = path.type;
    const bool may_miss =
        type == CatalogType::catalog ? reason == "no_such_metalake" : reason == "no_such_schema";
    if (above == nullptr) return may_miss ? "" : reason;
    Node* const node = above->child(type, path.name());
    if (node == nullptr) return {};
    const std::string word(catalog_word(type).name);
    constexpr CatalogType catalogs[] = {CatalogType::catalog};
    constexpr CatalogType schemas[] = {CatalogType::schema};
    constexpr CatalogType leaves[] = {CatalogType::table, CatalogType::fileset};
    if (!force && catalog_type_has_uuid(type) && !node->disabled) return word + "_in_use";
    if (!force && ((type == CatalogType::metalake && node->has(catalogs)) ||
                   (type == CatalogType::catalog && node->has(schemas)) ||
                   (type == CatalogType::schema && node->has(leaves))))
      return "non_empty_" + word;
    auto taken = above->children.extract({type, path.name()});
    above->dropped.push_back({now_ms, type, path.name(), {std::move(taken.mapped())}});
    done = true;
    return {};
  }

  std::string undelete(const EntityPath& path) {
    std::string reason;
    Node* const above = parent(path, reason);
    if (above == nullptr) return reason;
    const std::string word(catalog_word(path.type).name);
    if (above->child(path.type, path.name()) != nullptr) return word + "_exists";
    auto last = above->dropped.end();
    for (auto each = above->dropped.begin(); each != above->dropped.end(); ++each) {
      if (each->type != path.type || each->name != path.name()) continue;
      if (last == above->dropped.end() ||
          std::pair(each->due_ms, each->node[0].ref) > std::pair(last->due_ms, last->node[0].ref))
        last = each;
    }
    if (last == above->dropped.end()) return "no_such_" + word;
    last->node[0].version++;
    above->children.emplace(std::pair(path.type, path.name()), std::move(last->node[0]));
    above->dropped.erase(last);
    return {};
  }
};

void add_living(const Node& node, const Names& names, std::string& out) {
  for (const auto& [name, child] : node.children) {
    Names at = names;
    at.push_back(name.second);
    out += fmt::format("{} {} {} v{}\n", catalog_word(name.first).name, fmt::join(at, "."),
                       CatalogRefBytes::text(child.ref), child.version);
    add_living(child, at, out);
  }
}
std::string sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

bool is_fault(const Error& error) {
  return error.code == Code::unavailable || error.code == Code::maybe ||
         (error.code == Code::conflict && error.reason.empty());
}

class CatalogModel : public testing::TestWithParam<CatalogSetup> {};
INSTANTIATE_TEST_SUITE_P(Setups, CatalogModel, testing::ValuesIn(catalog_setups()),
                         [](const auto& info) { return std::string(info.param.name); });

// One who does one thing after the other, and knows what must come of it.
class Actor {
 public:
  Actor(CatalogWorld& world, uint64_t seed) : world_(world), random_(seed) {}

  void step() {
    CatalogWorld::Server& server = world_.server(random_.below(world_.servers()));
    const CatalogCall call = CatalogWorld::call(server);
    const EntityPath path = any_path(random_);
    world_.clock().advance_ms(random_.below(2));
    changes_before_ = world_.logged_changes();
    SimpleCatalog after = model_;
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const auto made = server.catalog->create(call, path, {});
        return settle(made, after.create(path, made ? made->ref : ref_at(path)), after);
      }
      case 4: {
        std::string name = path.name();
        name.back() = static_cast<char>('0' + random_.below(4));
        if (random_.one_in(3)) name = path.name();
        AlterOptions options;
        if (catalog_depth(path.type) == 4 && random_.one_in(2))
          options.new_schema = "s" + std::to_string(random_.below(2));
        const auto rename = [&](Entity& entity) {
          entity.stored.set_name(name);
          return Status();
        };
        const auto altered = server.catalog->alter(call, path, rename, options);
        return settle(altered, after.alter(path, name, options.new_schema), after);
      }
      case 5: {
        if (!catalog_type_has_uuid(path.type)) return;
        const bool in_use = !random_.one_in(3);
        const Status done = server.catalog->set_in_use(call, path, in_use);
        return settle(done, after.set_in_use(path, in_use), after);
      }
      case 6:
      case 7: return drop(server, path, after);
      case 8: {
        const auto back = server.catalog->undelete(call, path);
        return settle(back, after.undelete(path), after);
      }
      case 9: return list(server, path);
      case 10:
        if (!random_.one_in(10)) return;
        world_.set_faults(false);
        world_.collect_all();
        world_.set_faults(true);
        return model_.root.forget_dropped();
      default: return load(server, path);
    }
  }

  void expect_stored() {
    const std::string stored = to_string(world_.living());
    enable_all(model_.root);
    std::string wanted;
    add_living(model_.root, {}, wanted);
    EXPECT_EQ(sorted_lines(stored), sorted_lines(wanted));
  }

 private:
  // Takes over what was done: each thing that is done is one more change in a log.
  template <class T>
  void settle(const Result<T>& result, const std::string& reason, SimpleCatalog& after) {
    if (result || !is_fault(result.error())) {
      EXPECT_EQ(result ? "" : std::string(result.error().reason), reason);
      if (result) model_ = std::move(after);
      return;
    }
    if (result.error().code != Code::maybe || world_.logged_changes() == changes_before_) return;
    EXPECT_EQ(reason, "");
    model_ = std::move(after);
  }
  CatalogRef ref_at(const EntityPath& path) {
    const auto way = find_way(*world_.truth().tenant, path);
    EXPECT_OK(way);
    return way && way->complete() ? way->ref() : CatalogRef();
  }

  void drop(CatalogWorld::Server& server, const EntityPath& path, SimpleCatalog& after) {
    const bool force = random_.one_in(2);
    bool done = false;
    const auto dropped = server.catalog->drop(CatalogWorld::call(server), path, {.force = force});
    const std::string reason = after.drop(path, force, world_.clock().unix_ms(), done);
    if (dropped) {
      EXPECT_EQ(*dropped, done);
    }
    settle(dropped, reason, after);
  }
  void list(CatalogWorld::Server& server, const EntityPath& path) {
    Names listed;
    const auto done = server.catalog->list(CatalogWorld::call(server), parent_of(path), path.type,
                                           {}, [&](std::string_view name, const NamedRef&) {
                                             listed.emplace_back(name);
                                             return Visit::go_on;
                                           });
    if (!done && is_fault(done.error())) return;
    std::string reason;
    const Node* const above = model_.parent(path, reason);
    EXPECT_EQ(done ? "" : std::string(done.error().reason), reason);
    if (above == nullptr) return;
    Names wanted;
    for (const auto& [name, child] : above->children)
      if (name.first == path.type) wanted.push_back(name.second);
    EXPECT_EQ(listed, wanted);
  }
  void load(CatalogWorld::Server& server, const EntityPath& path) {
    const auto loaded = server.catalog->load(CatalogWorld::call(server), path);
    if (!loaded && is_fault(loaded.error())) return;
    std::string reason;
    const Node* const node = model_.find(path, reason, true);
    EXPECT_EQ(loaded ? "" : std::string(loaded.error().reason), reason);
    if (!loaded || node == nullptr) return;
    EXPECT_EQ(loaded->ref, node->ref);
    EXPECT_EQ(loaded->stored.version(), node->version);
    EXPECT_EQ(loaded->stored.disabled(), node->disabled);
  }
  static void enable_all(Node& node) {
    if (node.disabled) {
      node.disabled = false;
      node.version++;
    }
    for (auto& [name, child] : node.children) enable_all(child);
  }

  CatalogWorld& world_;
  Random random_;
  SimpleCatalog model_;
  uint64_t changes_before_ = 0;
};

TEST_P(CatalogModel, DoesWhatATreeWould) {
  const uint64_t seed = test_seed(1);
  CatalogWorld world(GetParam(), seed);
  Actor actor(world, seed);
  // A few rounds may go by without a commit whose outcome is left open.
  const auto is_enough = [&](uint64_t rounds) {
    return rounds >= test_rounds(60) && (!GetParam().faulty || world.faults() > 0 || rounds >= 60);
  };
  for (uint64_t round = 0; !is_enough(round) && !HasFailure(); round++) {
    world.set_faults(true);
    for (int i = 0; i < 50 && !HasFailure(); i++) actor.step();
    world.set_faults(false);
    actor.expect_stored();
    world.check();
  }
  if (GetParam().faulty) {
    EXPECT_GT(world.faults(), 0u);
  }
}

void run_threads(size_t count, const std::function<void(size_t)>& run) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; i++) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
}

// One of many who do anything at all; what it is told must not contradict what it was told before.
class Member {
 public:
  Member(CatalogWorld& world, size_t number, uint64_t seed)
      : server_(world.server(number)), random_(seed) {}

  void step() {
    const CatalogCall call = CatalogWorld::call(server_);
    const EntityPath path = any_path(random_);
    Catalog& catalog = *server_.catalog;
    switch (random_.below(12)) {
      case 10:
      case 11: return relate(path);
      case 0:
      case 1:
      case 2:
      case 3: {
        const auto made = catalog.create(call, path, {});
        if (made) made_.push_back(made->ref);
        return expect_fine(made);
      }
      case 4: {
        AlterOptions options;
        if (catalog_depth(path.type) == 4 && random_.one_in(2))
          options.new_schema = "s" + std::to_string(random_.below(2));
        const std::string name = "t" + std::to_string(random_.below(4));
        const auto altered = catalog.alter(
            call, path,
            [&](Entity& entity) {
              if (catalog_depth(path.type) == 4) entity.stored.set_name(name);
              return Status();
            },
            options);
        see(altered);
        return expect_fine(altered);
      }
      case 5:
        if (catalog_type_has_uuid(path.type))
          expect_fine(catalog.set_in_use(call, path, !random_.one_in(4)));
        return;
      case 6: return expect_fine(catalog.drop(call, path, {.force = random_.one_in(2)}));
      case 7: {
        const auto back = catalog.undelete(call, path);
        see(back);
        return expect_fine(back);
      }
      default: {
        const auto loaded = catalog.load(call, path);
        see(loaded);
        return expect_fine(loaded);
      }
    }
  }

  const std::vector<CatalogRef>& made() const { return made_; }

 private:
  // Tags, owners, roles and what they may do: relations in both directions, to what comes and goes.
  void relate(const EntityPath& path) {
    const CatalogCall call = CatalogWorld::call(server_);
    const std::string& lake = path.names.front();
    const EntityPath user{CatalogType::user, {lake, "u" + std::to_string(random_.below(2))}};
    const EntityPath role{CatalogType::role, {lake, "r" + std::to_string(random_.below(2))}};
    Catalog& catalog = *server_.catalog;
    switch (random_.below(7)) {
      case 0: {
        const EntityPath& what = random_.one_in(2) ? user : role;
        const auto made = catalog.create(call, what, {});
        if (made) made_.push_back(made->ref);
        return expect_fine(made);
      }
      case 1: return expect_fine(catalog.drop(call, random_.one_in(2) ? user : role));
      case 2:
        return expect_fine(change_roles(call, user, Names{role.name()}, !random_.one_in(3)), true);
      case 3:
      case 4: {
        stored::CatalogPrivilege privilege;
        privilege.set_name("manage_grants");
        const SecurableObject object{path, {privilege}};
        if (path.type == CatalogType::tag) return;
        constexpr GrantKind kinds[] = {GrantKind::grant, GrantKind::grant, GrantKind::revoke,
                                       GrantKind::replace};
        return expect_fine(
            change_grants(catalog, call, role, kinds[random_.below(4)], {&object, 1}));
      }
      case 5: return expect_fine(set_owner(call, path, user));
      default: {
        if (path.type == CatalogType::tag || path.type == CatalogType::metalake) return;
        LabelChanges changes;
        (random_.one_in(3) ? changes.remove : changes.add)
            .push_back({"c" + std::to_string(random_.below(2)), {}});
        return expect_fine(change_labels(call, path, CatalogType::tag, changes));
      }
    }
  }

  template <class T>
  void expect_fine(const Result<T>& result, bool may_be_invalid = false) {
    if (result || is_fault(result.error())) return;
    const Code code = result.error().code;
    EXPECT_TRUE(code == Code::not_found || code == Code::exists || code == Code::refused ||
                (may_be_invalid && code == Code::invalid))
        << to_string(result.error());
  }
  void see(const Result<Entity>& entity) {
    if (!entity) return;
    uint64_t& version = seen_[entity->ref];
    EXPECT_GE(entity->stored.version(), version) << "versions go up";
    version = entity->stored.version();
  }

  CatalogWorld::Server& server_;
  Random random_;
  std::vector<CatalogRef> made_;
  std::map<CatalogRef, uint64_t> seen_;
};

// Everybody does everything everywhere, and a collector comes along: whoever wins, what is stored
// is whole, the logs tell all of it in order, and no id was given twice.
TEST_P(CatalogModel, ManyThreadsLeaveACatalogThatIsWhole) {
  constexpr size_t threads = 16;
  const uint64_t seed = test_seed(2);
  CatalogWorld world(GetParam(), seed);
  std::vector<std::unique_ptr<Member>> members;
  for (size_t i = 0; i < threads; i++)
    members.push_back(std::make_unique<Member>(world, i, seed * 100 + i));
  for (uint64_t round = 0; round < test_rounds(10) && !HasFailure(); round++) {
    world.set_faults(true);
    std::atomic<size_t> running = threads;
    run_threads(threads + 1, [&](size_t i) {
      if (i == threads) {
        while (running > 0) {
          world.clock().advance_ms(1);
          if (round % 2 == 1) world.collect(world.server(round));
          std::this_thread::yield();
        }
        return;
      }
      for (int step = 0; step < 30; step++) members[i]->step();
      running--;
    });
    world.set_faults(false);
    world.check();
    if (round % 4 == 3) {
      world.collect_all();
      world.check();
    }
  }
  std::set<CatalogRef> all;
  for (const auto& member : members)
    for (const CatalogRef& ref : member->made())
      EXPECT_TRUE(all.insert(ref).second) << CatalogRefBytes::text(ref) << " was given twice";
  EXPECT_GT(all.size(), 0u);
}

// A number that everybody raises with If-Match: no step is lost, and who loses is told so.
TEST_P(CatalogModel, TagsOrderWriters) {
  constexpr size_t threads = 8;
  const uint64_t seed = test_seed(3);
  CatalogWorld world(GetParam(), seed);
  const EntityPath path{CatalogType::metalake, {"m"}};
  ASSERT_OK(world.truth().catalog->create(CatalogWorld::call(world.truth()), path, {}));
  world.set_faults(true);
  std::atomic<uint64_t> done = 0;
  std::atomic<uint64_t> unknown = 0;
  std::atomic<uint64_t> lost = 0;
  run_threads(threads, [&](size_t i) {
    CatalogWorld::Server& server = world.server(i);
    const CatalogCall call = CatalogWorld::call(server);
    for (uint64_t step = 0; step < test_rounds(100); step++) {
      const auto before = server.catalog->load(call, path);
      if (!before) continue;
      const auto altered =
          server.catalog->alter(call, path,
                                [&](Entity& entity) {
                                  auto& properties = *entity.stored.mutable_properties();
                                  properties["n"] = std::to_string(before->stored.version());
                                  return Status();
                                },
                                {.if_match = entity_tag(*before)});
      if (altered) done++;
      if (!altered && altered.error().code == Code::maybe) unknown++;
      if (!altered && altered.error().reason == "version_changed") lost++;
    }
  });
  world.set_faults(false);
  const auto entity = world.truth().catalog->load(CatalogWorld::call(world.truth()), path);
  ASSERT_OK(entity);
  EXPECT_GE(entity->stored.version(), 1 + done);
  EXPECT_LE(entity->stored.version(), 1 + done + unknown);
  EXPECT_EQ(entity->stored.properties().at("n"), std::to_string(entity->stored.version() - 1));
  EXPECT_GT(done, 0u);
  world.check();
}

}  // namespace
}  // namespace trellis
