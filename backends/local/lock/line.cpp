// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/line.hpp"

#include <algorithm>

namespace dlock::local {

void Line::join(std::uint64_t ticket, const std::shared_ptr<LocalClaim>& claim) {
  places_.emplace(ticket, claim);
}

bool Line::leave(std::uint64_t ticket) noexcept {
  const bool was_first = is_first(ticket);
  places_.erase(ticket);
  return was_first && !places_.empty();
}

std::shared_ptr<LocalClaim> Line::first() const noexcept {
  return places_.empty() ? nullptr : places_.begin()->second.lock();
}

bool Line::is_first(std::uint64_t ticket) const noexcept {
  return !places_.empty() && places_.begin()->first == ticket;
}

std::vector<std::shared_ptr<LocalClaim>> Line::everybody() const {
  std::vector<std::shared_ptr<LocalClaim>> claims;
  for (const auto& [ticket, place] : places_) {
    if (auto claim = place.lock()) claims.push_back(std::move(claim));
  }
  return claims;
}

std::shared_ptr<LocalClaim> Line::anybody() const noexcept {
  for (const auto& [ticket, place] : places_) {
    if (auto claim = place.lock()) return claim;
  }
  return nullptr;
}

std::shared_ptr<Line> Lines::of(const std::string& file) {
  if (auto found = find(file)) return found;
  // Made before there is a place for it: what is missing later must not leave a place without one.
  auto line = std::make_shared<Line>(file);
  by_file_.emplace(file, line);
  return line;
}

std::shared_ptr<Line> Lines::find(const std::string& file) const {
  const auto found = by_file_.find(file);
  return found == by_file_.end() ? nullptr : found->second;
}

std::shared_ptr<Line> Lines::watched(int watch) const {
  const auto found = by_watch_.find(watch);
  return found == by_watch_.end() ? nullptr : found->second.lock();
}

void Lines::set_watch(const std::shared_ptr<Line>& line, int watch) {
  if (watch >= 0) by_watch_[watch] = line;
  line->watch = watch;
}

int Lines::remove(const Line& line) {
  const int watch = line.watch;
  if (watch >= 0) by_watch_.erase(watch);
  by_file_.erase(line.file());
  return watch;
}

std::shared_ptr<LocalClaim> Lines::anybody() const noexcept {
  for (const auto& [file, line] : by_file_) {
    if (auto claim = line->anybody()) return claim;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Line>> Lines::all() const {
  std::vector<std::shared_ptr<Line>> lines;
  lines.reserve(by_file_.size());
  for (const auto& [file, line] : by_file_) lines.push_back(line);
  return lines;
}

}  // namespace dlock::local
