// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/lua.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <lua.hpp>
#include <stdexcept>

namespace dlock::simulation::redis {
namespace {

/// Whose data the running script sees. A registry entry would do; there is one script at a time.
thread_local CommandContext* running = nullptr;

// Lua's errors are longjmps: nothing with a destructor may be alive where one is raised. So what
// needs C++ is done in functions that return, and the raising is done around them.

void push(lua_State* lua, const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::nil:
      lua_pushboolean(lua, 0);
      break;
    case Reply::Kind::integer:
      lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
      break;
    case Reply::Kind::text:
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
      break;
    case Reply::Kind::status:
    case Reply::Kind::error:
      lua_newtable(lua);
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
      lua_setfield(lua, -2, reply.kind == Reply::Kind::status ? "ok" : "err");
      break;
    case Reply::Kind::array:
      lua_createtable(lua, static_cast<int>(reply.items.size()), 0);
      for (std::size_t i = 0; i < reply.items.size(); ++i) {
        push(lua, reply.items[i]);
        lua_rawseti(lua, -2, static_cast<int>(i + 1));
      }
      break;
  }
}

/// False: an argument that is neither a string nor a number.
bool take_arguments(lua_State* lua, Command& command) {
  const int count = lua_gettop(lua);
  for (int i = 1; i <= count; ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER) {
      // Not Lua's own conversion: it loses digits.
      std::array<char, 64> text{};
      const int size = std::snprintf(text.data(), text.size(), "%.17g", lua_tonumber(lua, i));
      command.emplace_back(text.data(), static_cast<std::size_t>(size));
    } else if (lua_type(lua, i) == LUA_TSTRING) {
      std::size_t size = 0;
      const char* text = lua_tolstring(lua, i, &size);
      command.emplace_back(text, size);
    } else {
      return false;
    }
  }
  return true;
}

/// Pushes the answer. True: it is an error.
bool answer_call(lua_State* lua) {
  Command command;
  Reply reply;
  if (lua_gettop(lua) == 0) {
    reply = error("ERR Please specify at least one argument for this redis.call() call");
  } else if (!take_arguments(lua, command)) {
    reply = error("ERR Lua redis lib command arguments must be strings or integers");
  } else {
    reply = run_command(*running, command);
    if (reply.is_error() && reply.text.starts_with("ERR unknown command")) {
      reply.text = "ERR Unknown Redis command called from script";
    }
  }
  push(lua, reply);
  return reply.is_error();
}

/// Where in the script: Redis puts it behind the error.
void add_place(lua_State* lua) {
  lua_Debug place{};
  if (lua_getstack(lua, 1, &place) == 0) return;
  lua_getinfo(lua, "nSl", &place);
  lua_pushstring(lua, place.source);
  lua_setfield(lua, -2, "source");
  lua_pushinteger(lua, place.currentline);
  lua_setfield(lua, -2, "line");
}

int call(lua_State* lua) {
  if (!answer_call(lua)) return 1;
  add_place(lua);
  return lua_error(lua);
}

int pcall(lua_State* lua) {
  answer_call(lua);
  return 1;
}

int one_field(lua_State* lua, const char* name) {
  lua_newtable(lua);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, name);
  return 1;
}
int error_reply(lua_State* lua) { return one_field(lua, "err"); }
int status_reply(lua_State* lua) { return one_field(lua, "ok"); }

int no_new_global(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }
int no_such_global(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

void open_library(lua_State* lua, lua_CFunction open, const char* name) {
  lua_pushcfunction(lua, open);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

/// What a script may use: no files, no other programs, no globals of its own.
void close_sandbox(lua_State* lua) {
  open_library(lua, luaopen_base, "");
  open_library(lua, luaopen_table, LUA_TABLIBNAME);
  open_library(lua, luaopen_string, LUA_STRLIBNAME);
  open_library(lua, luaopen_math, LUA_MATHLIBNAME);
  for (const char* name : {"dofile", "loadfile", "print", "newproxy", "collectgarbage"}) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
  lua_newtable(lua);
  const std::array<luaL_Reg, 4> functions{{{"call", &call},
                                           {"pcall", &pcall},
                                           {"error_reply", &error_reply},
                                           {"status_reply", &status_reply}}};
  for (const auto& function : functions) {
    lua_pushcfunction(lua, function.func);
    lua_setfield(lua, -2, function.name);
  }
  lua_setglobal(lua, "redis");
  lua_newtable(lua);
  lua_pushcfunction(lua, &no_new_global);
  lua_setfield(lua, -2, "__newindex");
  lua_pushcfunction(lua, &no_such_global);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

void set_list(lua_State* lua, const char* name, const std::vector<std::string>& words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    lua_pushlstring(lua, words[i].data(), words[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
  lua_pushstring(lua, name);
  lua_insert(lua, -2);
  lua_rawset(lua, LUA_GLOBALSINDEX);
}

/// The string field of the table on top; empty if there is none.
std::string field(lua_State* lua, const char* name) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  std::string text;
  if (lua_isstring(lua, -1) != 0) text = lua_tostring(lua, -1);
  lua_pop(lua, 1);
  return text;
}

/// A script's result, from the top of the stack.
Reply result(lua_State* lua) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* text = lua_tolstring(lua, -1, &size);
      return bulk(std::string(text, size));
    }
    case LUA_TNUMBER:
      return integer(static_cast<std::int64_t>(lua_tonumber(lua, -1)));
    case LUA_TBOOLEAN:
      return lua_toboolean(lua, -1) != 0 ? integer(1) : nil();
    case LUA_TTABLE:
      break;
    default:
      return nil();
  }
  if (auto text = field(lua, "err"); !text.empty()) return error(std::move(text));
  if (auto text = field(lua, "ok"); !text.empty()) return status(std::move(text));
  Replies items;
  // Up to the first nil.
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    const bool over = lua_isnil(lua, -1);
    if (!over) items.push_back(result(lua));
    lua_pop(lua, 1);
    if (over) break;
  }
  return array(std::move(items));
}

/// What a script that was ended by an error answers.
Reply failure(lua_State* lua, const std::string& sha) {
  if (!lua_istable(lua, -1)) {
    const char* text = lua_tostring(lua, -1);
    return error(fmt::format("ERR {} script: {}", text != nullptr ? text : "error", sha));
  }
  return error(fmt::format("{} script: {}, on {}:{}.", field(lua, "err"), sha, field(lua, "source"),
                           field(lua, "line")));
}

}  // namespace

Lua& Lua::instance() {
  static thread_local Lua lua;
  return lua;
}

Lua::Lua() : state_(luaL_newstate()) {
  if (state_ == nullptr) throw std::bad_alloc();
  close_sandbox(state_);
}

Lua::~Lua() { lua_close(state_); }

std::string Lua::compile(const std::string& sha, const std::string& text) {
  if (compiled_.find(sha) != compiled_.end()) return {};
  if (luaL_loadbuffer(state_, text.data(), text.size(), "@user_script") != 0) {
    std::string why = lua_tostring(state_, -1);
    lua_pop(state_, 1);
    return why;
  }
  compiled_.emplace(sha, luaL_ref(state_, LUA_REGISTRYINDEX));
  return {};
}

Reply Lua::run(const std::string& sha, const std::vector<std::string>& keys,
               const std::vector<std::string>& arguments, CommandContext& context) {
  running = &context;
  set_list(state_, "KEYS", keys);
  set_list(state_, "ARGV", arguments);
  lua_rawgeti(state_, LUA_REGISTRYINDEX, compiled_.at(sha));
  const bool failed = lua_pcall(state_, 0, 1, 0) != 0;
  auto reply = failed ? failure(state_, sha) : result(state_);
  lua_settop(state_, 0);
  running = nullptr;
  return reply;
}

std::string sha1_hex(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL gives no SHA-1");
  }
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest.at(i));
  return hex;
}

}  // namespace dlock::simulation::redis
