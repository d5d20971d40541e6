// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/queue.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace dlock::zookeeper {
namespace {

/// Numbered nodes by age: the smallest number among those that are younger than a given birth.
class NumbersByAge {
 public:
  NumbersByAge(const std::vector<Contender>& line, const Births& births) {
    for (const auto& contender : line) {
      if (contender.kind == Contender::Kind::seal || needs_birth(contender)) continue;
      const auto born = births.find(contender.name);
      if (born != births.end()) oldest_first_.emplace_back(born->second, contender.sequence);
    }
    std::sort(oldest_first_.begin(), oldest_first_.end());
    for (auto i = oldest_first_.size(); i-- > 1;) {
      auto& smallest = oldest_first_[i - 1].second;
      smallest = std::min(smallest, oldest_first_[i].second);
    }
  }
  std::optional<std::int32_t> smallest_after(std::int64_t birth) const {
    const auto next = std::upper_bound(oldest_first_.begin(), oldest_first_.end(),
                                       std::pair(birth, std::numeric_limits<std::int32_t>::max()));
    if (next == oldest_first_.end()) return {};
    return next->second;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int32_t>> oldest_first_;
};

/// The order of the queue: seals, then numbered nodes by number, then those past the counter's end
/// by birth. But one of the latter that is older than a numbered node is before it.
auto rank(const Contender& contender, const Births& births, const NumbersByAge& numbers) {
  using Rank = std::tuple<int, std::int64_t, int, std::int64_t>;
  if (contender.kind == Contender::Kind::seal) return Rank{0, 0, 0, 0};
  if (!needs_birth(contender)) return Rank{1, contender.sequence, 1, 0};
  const auto born = births.find(contender.name);
  if (born == births.end()) return Rank{2, 0, 0, std::numeric_limits<std::int64_t>::max()};
  if (const auto younger = numbers.smallest_after(born->second)) {
    return Rank{1, *younger, 0, born->second};
  }
  return Rank{2, 0, 0, born->second};
}

}  // namespace

bool needs_birth(const Contender& contender) {
  return contender.kind != Contender::Kind::seal &&
         (contender.sequence < 0 || contender.sequence == std::numeric_limits<std::int32_t>::max());
}

bool has_name_of_several(std::string_view path) {
  const auto contender = parse_contender(path.substr(path.rfind('/') + 1));
  return contender && needs_birth(*contender);
}

std::vector<Contender> in_line(const std::vector<std::string>& children, const Births& births) {
  std::vector<Contender> line;
  for (const auto& child : children) {
    if (auto contender = parse_contender(child)) line.push_back(std::move(*contender));
  }
  const NumbersByAge numbers(line, births);
  // Two numbered nodes are equal only while a writer is downgraded to a reader. Both are before
  // every later node, so the name may decide.
  std::sort(line.begin(), line.end(), [&](const Contender& a, const Contender& b) {
    const auto left = rank(a, births, numbers);
    const auto right = rank(b, births, numbers);
    return left != right ? left < right : a.name < b.name;
  });
  return line;
}

std::vector<std::string> births_to_ask(const std::vector<Contender>& line, const Births& births) {
  std::vector<std::string> unborn;
  if (std::none_of(line.begin(), line.end(), needs_birth)) return unborn;
  for (const auto& contender : line) {
    const bool seal = contender.kind == Contender::Kind::seal;
    if (!seal && births.find(contender.name) == births.end()) unborn.push_back(contender.name);
  }
  return unborn;
}

Queue::Queue(const std::vector<std::string>& children, const Births& births)
    : line_(in_line(children, births)),
      by_name_(line_.size()),
      read_write_(std::any_of(line_.begin(), line_.end(),
                              [](const Contender& contender) {
                                return contender.kind == Contender::Kind::write ||
                                       contender.kind == Contender::Kind::read;
                              })),
      unborn_(births_to_ask(line_, births)) {
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [this](std::size_t a, std::size_t b) { return line_[a].name < line_[b].name; });
}

/// The first one that is not before `name`.
Queue::Places::const_iterator Queue::from(std::string_view name) const {
  return std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](std::size_t place, std::string_view other) { return line_[place].name < other; });
}

QueueDecision Queue::decision_of(std::string_view own) const {
  const auto found = from(own);
  if (found == by_name_.end() || line_[*found].name != own) return {};
  const auto me = line_.begin() + static_cast<std::ptrdiff_t>(*found);
  QueueDecision decision;
  decision.read_write = read_write_;
  decision.unborn = unborn_;
  if (!decision.unborn.empty()) {
    decision.kind = QueueDecision::Kind::unborn;
    return decision;
  }
  const auto before = obstacle_of(me, is_shared(me->kind));
  if (before == line_.end()) {
    decision.kind = QueueDecision::Kind::first;
    return decision;
  }
  decision.kind = QueueDecision::Kind::behind;
  decision.watch = before->name;
  if (line_.front().kind == Contender::Kind::seal) decision.seal = line_.front().name;
  const bool is_last = obstacle_of(before, is_shared(me->kind)) == line_.end();
  decision.watch_decides = is_last && before->kind == Contender::Kind::mutex;
  return decision;
}

Queue::Line::const_iterator Queue::obstacle_of(Line::const_iterator one, bool shares) const {
  while (one != line_.begin()) {
    --one;
    if (!shares || !is_shared(one->kind)) return one;
  }
  return line_.end();
}

std::vector<std::string> Queue::copies_of(std::string_view id) const {
  const auto prefix = claim_prefix(id);
  std::vector<std::string> copies;
  for (auto next = from(prefix); next != by_name_.end(); ++next) {
    const auto& name = line_[*next].name;
    if (!name.starts_with(prefix)) break;
    if (is_copy_of(id, name)) copies.push_back(name);
  }
  return copies;
}

std::size_t Queue::waiting_before(std::string_view own) const {
  const auto mine = std::find_if(line_.begin(), line_.end(),
                                 [own](const Contender& one) { return one.name == own; });
  auto waiting =
      std::find_if(line_.begin(), mine, [](const Contender& one) { return !is_shared(one.kind); });
  if (waiting == line_.begin() && waiting != mine) ++waiting;  // a single holder, and first
  return static_cast<std::size_t>(mine - waiting);
}

std::vector<std::string> Queue::names() const {
  std::vector<std::string> names;
  names.reserve(line_.size());
  for (const auto& contender : line_) names.push_back(contender.name);
  return names;
}

QueueDecision decision_of(std::string_view own, const std::vector<std::string>& children,
                          const Births& births) {
  return Queue(children, births).decision_of(own);
}

}  // namespace dlock::zookeeper
