// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/queue.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include "core/planted.hpp"

namespace dlock::zookeeper {
namespace {

/// Seals, then numbered nodes by number, then those past the counter's end by birth.
auto rank(const Contender& contender, const Births& births) {
  if (contender.kind == Contender::Kind::seal) return std::tuple(0, std::int64_t{0});
  if (!needs_birth(contender)) return std::tuple(1, std::int64_t{contender.sequence});
  const auto born = births.find(contender.name);
  return std::tuple(2,
                    born == births.end() ? std::numeric_limits<std::int64_t>::max() : born->second);
}

}  // namespace

bool needs_birth(const Contender& contender) {
  if (DLOCK_PLANTED("zk_order_by_suffix_at_counter_end")) return false;
  return contender.kind != Contender::Kind::seal &&
         (contender.sequence < 0 || contender.sequence == std::numeric_limits<std::int32_t>::max());
}

std::vector<Contender> in_line(const std::vector<std::string>& children, const Births& births) {
  std::vector<Contender> line;
  for (const auto& child : children) {
    if (auto contender = parse_contender(child)) line.push_back(std::move(*contender));
  }
  // A tie of two numbered nodes is a writer that steps down to a reader: both are ahead of whoever
  // comes later, so the name may decide.
  std::sort(line.begin(), line.end(), [&](const Contender& a, const Contender& b) {
    const auto left = rank(a, births);
    const auto right = rank(b, births);
    return left != right ? left < right : a.name < b.name;
  });
  return line;
}

Standing standing_of(std::string_view own, const std::vector<std::string>& children,
                     const Births& births) {
  const auto line = in_line(children, births);
  const auto me = std::find_if(line.begin(), line.end(),
                               [&](const Contender& contender) { return contender.name == own; });
  if (me == line.end()) return {};
  Standing standing;
  if (needs_birth(*me)) {
    for (const auto& contender : line) {
      if (needs_birth(contender) && births.find(contender.name) == births.end()) {
        standing.unborn.push_back(contender.name);
      }
    }
    if (!standing.unborn.empty()) {
      standing.kind = Standing::Kind::unborn;
      return standing;
    }
  }
  if (me == line.begin()) {
    standing.kind = Standing::Kind::first;
    return standing;
  }
  const auto before = std::prev(me);
  standing.kind = Standing::Kind::behind;
  standing.watch = before->name;
  standing.watch_decides = before == line.begin() && before->kind == Contender::Kind::mutex;
  if (DLOCK_PLANTED("zk_trust_any_predecessor")) standing.watch_decides = true;
  return standing;
}

}  // namespace dlock::zookeeper
