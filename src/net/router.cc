#include "net/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "net/ascii.h"
#include "net/url.h"

namespace trellis {
namespace {

constexpr size_t captures_max = 16;

constexpr unsigned bit(HttpMethod method) { return 1U << static_cast<unsigned>(method); }

// Takes the first segment off a path whose leading '/' is gone. Nothing is left after the last:
// not "", which would be one more segment.
std::string_view take_segment(std::optional<std::string_view>& path) {
  const size_t slash = path->find('/');
  const std::string_view segment = path->substr(0, slash);
  if (slash == std::string_view::npos) {
    path.reset();
  } else {
    path = path->substr(slash + 1);
  }
  return segment;
}

Error bad_route(const Route& route, std::string_view why) {
  return {Code::invalid,
          fmt::format("route {} {}: {}", to_string(route.method), quote(route.pattern), why)};
}

Status check_functions(const Route& route) {
  const bool streams = route.body == Route::Body::streamed;
  if (streams != static_cast<bool>(route.open) || streams == static_cast<bool>(route.handle)) {
    return bad_route(route, "it needs `open` if its body is streamed, else `handle`, and not both");
  }
  if (route.body != Route::Body::none && route.body_bytes_max == 0) {
    return bad_route(route, "it takes a body, so it needs body_bytes_max");
  }
  return {};
}

enum class SegmentKind : uint8_t { literal, one, rest };

Result<SegmentKind> kind_of(const Route& route, std::string_view segment, bool is_last) {
  if (segment.find_first_of("{}") == std::string_view::npos) {
    // What a request may not send could never match.
    if (std::any_of(segment.begin(), segment.end(), is_control)) {
      return bad_route(route, "a literal has control bytes");
    }
    return SegmentKind::literal;
  }
  if (segment.size() < 3 || segment.front() != '{' || segment.back() != '}') {
    return bad_route(route, "a capture is a whole segment: {name} or {name*}");
  }
  std::string_view name = segment.substr(1, segment.size() - 2);
  const bool takes_rest = name.ends_with('*');
  if (takes_rest) name.remove_suffix(1);
  if (takes_rest && !is_last) return bad_route(route, "{name*} must be the last segment");
  if (name.empty() || !std::all_of(name.begin(), name.end(), [](char c) {
        return is_ascii_letter(c) || is_ascii_digit(c) || c == '_';
      })) {
    return bad_route(route, "a capture's name has letters, digits and '_'");
  }
  return takes_rest ? SegmentKind::rest : SegmentKind::one;
}

}  // namespace

struct Router::Tree {
  using NodeId = uint32_t;
  static constexpr NodeId no_node = 0;  // the root, which is nobody's child

  struct Node {
    std::vector<std::pair<std::string, NodeId>> literals;  // sorted
    NodeId one = no_node;                                  // {name}
    NodeId rest = no_node;                                 // {name*}
    unsigned allow = 0;
    std::array<const Route*, http_method_count> routes{};  // that end here
  };

  struct Search {
    HttpMethod method;
    bool has_escapes;
    Match match;
    std::array<std::string_view, captures_max> captures;  // encoded
    size_t capture_count = 0;
  };

  Status add(const Route& route);
  NodeId child(NodeId parent, SegmentKind kind, std::string_view segment);
  const NodeId* find_literal(const Node& node, std::string_view segment, bool has_escapes) const;
  bool visit(NodeId id, std::optional<std::string_view> path, Search& search) const;
  bool capture_and_visit(NodeId id, std::string_view captured, std::optional<std::string_view> path,
                         Search& search) const;
  bool accept(const Node& node, Search& search) const;

  std::vector<Route> routes;
  std::vector<Node> nodes{1};
};

Router::Tree::NodeId Router::Tree::child(NodeId parent, SegmentKind kind,
                                         std::string_view segment) {
  const auto fresh = static_cast<NodeId>(nodes.size());
  NodeId found = no_node;
  if (kind == SegmentKind::literal) {
    auto& literals = nodes[parent].literals;
    const auto at = std::lower_bound(literals.begin(), literals.end(), segment,
                                     [](const auto& a, std::string_view b) { return a.first < b; });
    if (at != literals.end() && at->first == segment) return at->second;
    literals.emplace(at, segment, fresh);
  } else {
    NodeId& slot = kind == SegmentKind::one ? nodes[parent].one : nodes[parent].rest;
    found = std::exchange(slot, slot == no_node ? fresh : slot);
  }
  if (found != no_node) return found;
  nodes.emplace_back();
  return fresh;
}

Status Router::Tree::add(const Route& route) {
  TRY(check_functions(route));
  if (!route.pattern.starts_with('/')) return bad_route(route, "a pattern starts with '/'");
  std::optional<std::string_view> path = route.pattern.substr(1);
  NodeId node = 0;
  size_t captures = 0;
  while (path.has_value()) {
    const std::string_view segment = take_segment(path);
    TRY_ASSIGN(const SegmentKind kind, kind_of(route, segment, !path.has_value()));
    if (kind != SegmentKind::literal && ++captures > captures_max) {
      return bad_route(route, fmt::format("it has over {} captures", captures_max));
    }
    node = child(node, kind, segment);
  }
  const Route*& slot = nodes[node].routes[static_cast<size_t>(route.method)];
  if (slot != nullptr) {
    return bad_route(route, fmt::format("it is the same as {}", quote(slot->pattern)));
  }
  slot = &route;
  nodes[node].allow |= bit(route.method);
  return {};
}

const Router::Tree::NodeId* Router::Tree::find_literal(const Node& node, std::string_view segment,
                                                       bool has_escapes) const {
  Bytes decoded;
  if (has_escapes) {
    if (Result<Bytes> result = percent_decode(segment); result.has_value()) {
      decoded = std::move(*result);
      segment = decoded;
    }
  }
  const auto at = std::lower_bound(node.literals.begin(), node.literals.end(), segment,
                                   [](const auto& a, std::string_view b) { return a.first < b; });
  return at != node.literals.end() && at->first == segment ? &at->second : nullptr;
}

bool Router::Tree::accept(const Node& node, Search& search) const {
  search.match.allow |= node.allow;
  const Route* route = node.routes[static_cast<size_t>(search.method)];
  if (route == nullptr && search.method == HttpMethod::head) {
    route = node.routes[static_cast<size_t>(HttpMethod::get)];
  }
  search.match.route = route;
  return route != nullptr;
}

bool Router::Tree::capture_and_visit(NodeId id, std::string_view captured,
                                     std::optional<std::string_view> path, Search& search) const {
  search.captures[search.capture_count++] = captured;
  if (visit(id, path, search)) return true;
  --search.capture_count;
  return false;
}

// Most special first, and back to the next best if that leads nowhere. Visits each node at most
// once, and goes as deep as the longest pattern.
bool Router::Tree::visit(NodeId id, std::optional<std::string_view> path, Search& search) const {
  const Node& node = nodes[id];
  if (!path.has_value()) return accept(node, search);
  const std::string_view all = *path;
  const std::string_view segment = take_segment(path);
  if (const NodeId* literal = find_literal(node, segment, search.has_escapes)) {
    if (visit(*literal, path, search)) return true;
  }
  if (node.one != no_node && !segment.empty() &&
      capture_and_visit(node.one, segment, path, search)) {
    return true;
  }
  return node.rest != no_node && capture_and_visit(node.rest, all, std::nullopt, search);
}

Router::Router(std::unique_ptr<Tree> tree) : tree_(std::move(tree)) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

Result<Router> Router::make(std::vector<Route> routes) {
  auto tree = std::make_unique<Tree>();
  tree->routes = std::move(routes);
  for (const Route& route : tree->routes) TRY(tree->add(route));
  return Router(std::move(tree));
}

Router::Match Router::find(HttpMethod method, std::string_view path,
                           std::vector<std::string>& captures) const {
  captures.clear();
  if (!path.starts_with('/')) return {};
  Tree::Search search{.method = method,
                      .has_escapes = path.find('%') != std::string_view::npos,
                      .match = {},
                      .captures = {}};
  if (!tree_->visit(0, path.substr(1), search)) return search.match;
  for (size_t i = 0; i < search.capture_count; ++i) {
    // Cannot fail: the path was checked.
    captures.push_back(percent_decode(search.captures[i]).value_or(Bytes()));
  }
  return search.match;
}

std::span<const Route> Router::routes() const { return tree_->routes; }

std::string allow_header(unsigned allow) {
  if ((allow & bit(HttpMethod::get)) != 0) allow |= bit(HttpMethod::head);
  allow |= bit(HttpMethod::options);
  std::string out;
  for (unsigned i = 0; i < http_method_count; ++i) {
    if ((allow & (1U << i)) == 0) continue;
    if (!out.empty()) out += ", ";
    out += to_string(static_cast<HttpMethod>(i));
  }
  return out;
}

}  // namespace trellis
