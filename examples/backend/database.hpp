// SPDX-License-Identifier: Apache-2.0
//
// What the backend needs of SQLite: statements with values, and transactions. Blocking.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sqlite_locks {

struct SqlError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Database {
 public:
  /// Throws SqlError. `patience`: how long to wait for other processes.
  Database(const std::string& path, int patience_ms);
  ~Database() { sqlite3_close_v2(db_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const char* sql);
  int changes() const { return sqlite3_changes(db_); }
  sqlite3* get() const { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

/// `Statement(db, "... ? ...", values...)`; then rows while next() is true.
class Statement {
 public:
  template <class... Values>
  Statement(Database& db, const char* sql, const Values&... values) : db_(db) {
    if (sqlite3_prepare_v2(db.get(), sql, -1, &statement_, nullptr) != SQLITE_OK) fail();
    int at = 0;
    (bind(++at, values), ...);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool next();
  /// For what has no rows: how many it changed.
  int run();
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const;
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  void bind(int at, std::int64_t value) { sqlite3_bind_int64(statement_, at, value); }
  void bind(int at, std::string_view value) {
    sqlite3_bind_text(statement_, at, value.data(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
  }
  [[noreturn]] void fail() const { throw SqlError(sqlite3_errmsg(db_.get())); }

  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
};

/// Nobody else writes until its end; what is not committed has not happened.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db) { db.run("BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (!done_) sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    db_.run("COMMIT");
    done_ = true;
  }

 private:
  Database& db_;
  bool done_ = false;
};

}  // namespace sqlite_locks
