// SPDX-License-Identifier: Apache-2.0
#include "cli/output/semaphore_output.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/output/json_values.hpp"
#include "cli/output/text.hpp"
#include "program/output.hpp"

namespace dlock::cli {
namespace {

using program::printable;

std::string count_words(std::uint64_t count) {
  return count == 1 ? std::string("1 permit") : fmt::format("{} permits", count);
}

std::string line_of(std::string_view label, const std::string& text) {
  return fmt::format("\n  {:<12}{}", label, printable(text));
}

std::string holder_text(const PermitHolder& holder) {
  auto text = fmt::format("{}, {}", who(holder.owner), count_words(holder.permits));
  if (holder.held_for) text += fmt::format(", for {}", rounded(*holder.held_for));
  if (holder.token) text += fmt::format(", token {}", *holder.token);
  if (holder.remaining) text += fmt::format(", lease left {}", rounded(*holder.remaining));
  if (holder.broken) text += ", " + break_text(*holder.broken);
  return text;
}

boost::json::object waiter_object(const PermitHolder& waiter) {
  auto object = owner_object(waiter.owner);
  object["permits"] = waiter.permits;
  return object;
}

boost::json::object holder_object(const PermitHolder& holder) {
  auto object = waiter_object(holder);
  object["token"] = or_null(holder.token);
  object["since_ms"] = ms_or_null(holder.held_for);
  object["remaining_ms"] = ms_or_null(holder.remaining);
  object["broken"] = break_value(holder.broken);
  return object;
}

}  // namespace

std::string to_text(const SemaphoreStatus& status) {
  auto text = printable(status.name) + ": ";
  if (status.limit) {
    text += fmt::format("{} of {} free", status.free(), count_words(*status.limit));
  } else {
    text += "nobody has said how many permits it has";
  }
  for (const auto& holder : status.holders) text += line_of("holder", holder_text(holder));
  for (const auto& waiter : status.waiting) text += line_of("waiting", holder_text(waiter));
  for (const auto& note : status.notes) text += line_of("note", note);
  return text;
}

boost::json::object semaphore_object(const SemaphoreStatus& status) {
  boost::json::array holders;
  for (const auto& holder : status.holders) holders.push_back(holder_object(holder));
  boost::json::array waiting;
  for (const auto& waiter : status.waiting) waiting.push_back(waiter_object(waiter));
  boost::json::array notes;
  for (const auto& note : status.notes) notes.push_back(utf8(note));
  return boost::json::object{
      {"name", utf8(status.name)},
      {"limit", or_null(status.limit)},
      {"held", status.held()},
      {"free", status.limit ? boost::json::value(status.free()) : boost::json::value(nullptr)},
      {"holders", std::move(holders)},
      {"waiting", std::move(waiting)},
      {"notes", std::move(notes)}};
}

std::string to_json(const SemaphoreStatus& status) {
  return boost::json::serialize(semaphore_object(status));
}

boost::json::object listed_semaphore(const SemaphoreStatus& status) {
  auto object = semaphore_object(status);
  boost::json::object listed{{"kind", "semaphore"},
                             {"name", object["name"]},
                             {"limit", object["limit"]},
                             {"permits_held", object["held"]},
                             {"permits_free", object["free"]}};
  for (const auto* const key : {"holders", "waiting", "notes"}) listed[key] = object[key];
  return listed;
}

std::string semaphore_set_json(const std::string& name, std::uint32_t limit) {
  return boost::json::serialize(
      boost::json::object{{"event", "set"}, {"name", utf8(name)}, {"limit", limit}});
}

}  // namespace dlock::cli
