// SPDX-License-Identifier: Apache-2.0
//
// The tries of one fault on one store, taken together.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlock::compare {

class Tries {
 public:
  /// Of the raw results of one scenario on one store with one client.
  explicit Tries(std::vector<const boost::json::object*> results) : results_(std::move(results)) {}

  bool empty() const { return results_.empty(); }
  /// Those that could be measured.
  std::size_t measured() const;
  std::size_t failed() const { return results_.size() - measured(); }
  /// In which something was broken, as the events tell.
  std::size_t with_fault() const;
  /// In which a value is more than nothing.
  std::size_t with(const char* value) const;
  double sum(const char* value) const;
  double most(const char* value) const;

  struct Median {
    double value = 0;
    std::size_t samples = 0;
  };
  std::optional<Median> median(const char* value) const;

  /// Of a list of texts (`contradictions`, `broken_assumptions`, `missed`): how many tries have
  /// any, and all of them, each once.
  std::size_t with_texts(const char* list) const;
  std::string texts(const char* list) const;
  /// Why those that failed did, each reason once.
  std::string why_failed() const;

 private:
  std::vector<const boost::json::object*> results_;
};

/// "3 tries", "1 try".
std::string show_tries(std::size_t tries);

}  // namespace dlock::compare
