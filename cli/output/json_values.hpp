// SPDX-License-Identifier: Apache-2.0
//
// Values of ours as JSON: what is not known is null.
#pragma once

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"
#include "dlock/spi/name.hpp"

namespace dlock::cli {

/// What others wrote may be any bytes, and JSON is UTF-8.
inline boost::json::string utf8(std::string_view text) {
  boost::json::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    result += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

template <class T>
boost::json::value or_null(const std::optional<T>& value) {
  return value ? boost::json::value(*value) : boost::json::value(nullptr);
}

inline boost::json::value or_null(const std::string& text) {
  return text.empty() ? boost::json::value(nullptr) : boost::json::value(utf8(text));
}

template <class D>
boost::json::value ms_or_null(const std::optional<D>& duration) {
  if (!duration) return nullptr;
  return std::chrono::floor<std::chrono::milliseconds>(*duration).count();
}

inline boost::json::object owner_object(const Owner& owner) {
  return {{"host", or_null(owner.host)},
          {"pid", owner.pid == 0 ? boost::json::value(nullptr) : boost::json::value(owner.pid)},
          {"pid_namespace", owner.pid_namespace == 0 ? boost::json::value(nullptr)
                                                     : boost::json::value(owner.pid_namespace)},
          {"app", or_null(owner.app)},
          {"id", or_null(owner.id)}};
}

inline boost::json::value break_value(const std::optional<Break>& mark) {
  if (!mark) return nullptr;
  return boost::json::object{{"by", owner_object(mark->by)},
                             {"reason", or_null(mark->reason)},
                             {"at_ms", mark->at.count()}};
}

}  // namespace dlock::cli
