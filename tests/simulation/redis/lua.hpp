// SPDX-License-Identifier: Apache-2.0
//
// Runs scripts in real Lua 5.1, the interpreter that Redis has inside, with Redis' rules for what
// goes in and what comes out. One interpreter for all servers of all runs of a program: a script
// leaves nothing behind, and compiling is what costs.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tests/simulation/redis/commands.hpp"

struct lua_State;

namespace dlock::simulation::redis {

class Lua {
 public:
  /// The one of this thread.
  static Lua& instance();

  ~Lua();
  Lua(const Lua&) = delete;
  Lua& operator=(const Lua&) = delete;

  /// Empty, or why the text is no script.
  std::string compile(const std::string& sha, const std::string& text);
  /// `sha` was compiled.
  Reply run(const std::string& sha, const std::vector<std::string>& keys,
            const std::vector<std::string>& arguments, CommandContext& context);

 private:
  Lua();

  lua_State* state_;
  std::unordered_map<std::string, int> compiled_;  ///< places in Lua's registry
};

/// As Redis names scripts.
std::string sha1_hex(const std::string& text);

}  // namespace dlock::simulation::redis
