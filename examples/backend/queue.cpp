// SPDX-License-Identifier: Apache-2.0
#include "queue.hpp"

#include <fstream>

namespace sqlite_locks {
namespace {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// `state` of a row.
constexpr int kWaiting = 0;  // 1: granted
constexpr int kBroken = 2;   // ended; kept until its holder has heard
constexpr int kMarked = 3;   // an operator breaks it: not renewed, not yet free

}  // namespace

Queue::Queue(Database& db) : db_(db) {
  Transaction change(db);
  db.run(
      "CREATE TABLE IF NOT EXISTS boot (id TEXT);"
      "CREATE TABLE IF NOT EXISTS claims (token INTEGER PRIMARY KEY AUTOINCREMENT,"
      " name TEXT NOT NULL, owner TEXT NOT NULL UNIQUE, host TEXT, pid INTEGER, app TEXT,"
      " state INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL,"
      " mark TEXT NOT NULL DEFAULT '');"
      "CREATE INDEX IF NOT EXISTS queues ON claims (name, token);"
      "INSERT INTO sqlite_sequence (name, seq) SELECT 'claims', 0"
      " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'claims')");
  const auto now_booted = boot_id();
  Statement known(db, "SELECT 1 FROM boot WHERE id = ?", now_booted);
  if (!known.next()) {
    db.run("DELETE FROM claims; DELETE FROM boot");
    Statement(db, "INSERT INTO boot VALUES (?)", now_booted).run();
  }
  change.commit();
}

Queue::Place Queue::claim(const dlock::ClaimRequest& request, std::int64_t now, std::int64_t until,
                          std::int64_t patience) {
  Transaction change(db_);
  const auto& owner = request.owner;
  Statement(db_, "DELETE FROM claims WHERE name = ? AND until < ?", request.name, now).run();
  Statement marked(db_, "SELECT 1 FROM claims WHERE owner = ? AND state = ?", owner.id,
                   std::int64_t{kMarked});
  if (marked.next()) {
    Place waits;
    waits.waiting = request.queue;
    return waits;
  }
  const auto place = [&] {
    Statement ours(db_, "SELECT token FROM claims WHERE owner = ? AND state <> ?", owner.id,
                   std::int64_t{kBroken});
    return ours.next() ? ours.number(0) : 0;
  };
  auto token = place();
  if (token == 0) {
    // Above what was asked for, whatever was given before.
    Statement(db_, "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'claims'",
              static_cast<std::int64_t>(request.min_token))
        .run();
    Statement(db_,
              "INSERT INTO claims (name, owner, host, pid, app, state, since, until)"
              " VALUES (?, ?, ?, ?, ?, 0, 0, ?)",
              request.name, owner.id, owner.host, owner.pid, owner.app, patience)
        .run();
    token = place();
  }
  Statement before(db_, "SELECT count(*) FROM claims WHERE name = ? AND token < ? AND state <> ?",
                   request.name, token, std::int64_t{kBroken});
  before.next();
  Place result;
  result.before = before.number(0);
  result.granted = result.before == 0;
  result.waiting = !result.granted && request.queue;
  result.token = static_cast<std::uint64_t>(token);
  if (result.granted) {
    Statement(db_,
              "UPDATE claims SET since = iif(state = 1, since, ?), state = 1, until = ?"
              " WHERE token = ?",
              now, until, token)
        .run();
  } else if (result.waiting) {
    Statement(db_, "UPDATE claims SET until = ? WHERE token = ? AND until < ?", patience, token,
              now + (patience - now) / 2)
        .run();
  } else {
    Statement(db_, "DELETE FROM claims WHERE token = ?", token).run();
  }
  change.commit();
  return result;
}

Queue::Renewed Queue::renew(const std::string& owner_id, std::int64_t now, std::int64_t until) {
  Statement extended(db_,
                     "UPDATE claims SET until = ? WHERE owner = ? AND state = 1 AND until >= ?",
                     until, owner_id, now);
  if (extended.run() == 1) return Renewed::yes;
  Statement marked(db_, "SELECT 1 FROM claims WHERE owner = ? AND state = ?", owner_id,
                   std::int64_t{kMarked});
  if (marked.next()) return Renewed::broken;
  Statement broken(db_, "DELETE FROM claims WHERE owner = ? AND state = ?", owner_id,
                   std::int64_t{kBroken});
  return broken.run() == 1 ? Renewed::broken : Renewed::gone;
}

bool Queue::release(const std::string& owner_id) {
  Statement ours(db_, "DELETE FROM claims WHERE owner = ? AND state <> ?", owner_id,
                 std::int64_t{kBroken});
  const bool was_there = ours.run() == 1;
  Statement(db_, "DELETE FROM claims WHERE owner = ?", owner_id).run();
  return was_there;
}

std::string Queue::mark_of(const std::string& owner_id) {
  Statement ours(db_, "SELECT mark FROM claims WHERE owner = ?", owner_id);
  return ours.next() ? ours.text(0) : std::string();
}

Queue::Broken Queue::break_lock(const dlock::EvictRequest& request, std::int64_t now,
                                std::int64_t& until) {
  Transaction change(db_);
  Statement held(db_,
                 "SELECT token, state, until FROM claims WHERE name = ? AND state IN (1, 3)"
                 " AND until >= ?",
                 request.name, now);
  if (!held.next()) return Broken::not_held;
  if (held.number(0) != static_cast<std::int64_t>(request.token)) return Broken::other_token;
  until = held.number(2);
  const auto state = request.at_once ? kBroken : kMarked;
  if (held.number(1) != state) {
    Statement(db_, "UPDATE claims SET state = ?, mark = ? WHERE token = ?", std::int64_t{state},
              dlock::write_break(request.mark), held.number(0))
        .run();
  }
  change.commit();
  return request.at_once ? Broken::yes : Broken::marked;
}

dlock::LockStatus Queue::status(const std::string& name, std::int64_t now) {
  dlock::LockStatus status;
  status.name = name;
  Statement rows(db_,
                 "SELECT token, owner, host, pid, app, state, since, until, mark FROM claims"
                 " WHERE name = ? AND until >= ? AND state <> 2 ORDER BY token",
                 name, now);
  while (rows.next()) {
    const dlock::Owner owner{rows.text(1), rows.text(2), rows.number(3), rows.text(4)};
    if (rows.number(5) == kWaiting) {
      status.waiting.push_back(owner);
      continue;
    }
    const auto milliseconds = [](std::int64_t ns) {
      return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(ns));
    };
    status.held = true;
    status.token = static_cast<std::uint64_t>(rows.number(0));
    status.owner = owner;
    status.held_for = milliseconds(now - rows.number(6));
    status.remaining = milliseconds(rows.number(7) - now);
    if (rows.number(5) == kMarked) status.broken = dlock::read_break(rows.text(8));
  }
  return status;
}

std::vector<std::string> Queue::held_names(const std::string& prefix, std::int64_t now) {
  std::vector<std::string> names;
  Statement rows(db_, "SELECT name FROM claims WHERE state = 1 AND until >= ? ORDER BY name", now);
  while (rows.next()) {
    auto name = rows.text(0);
    if (prefix.empty() || name == prefix || name.starts_with(prefix + "/")) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace sqlite_locks
