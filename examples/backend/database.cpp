// SPDX-License-Identifier: Apache-2.0
#include "database.hpp"

namespace sqlite_locks {

Database::Database(const std::string& path, int patience_ms) {
  if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) {
    const std::string why = path + ": " + sqlite3_errmsg(db_);
    sqlite3_close_v2(db_);
    throw SqlError(why);
  }
  sqlite3_busy_timeout(db_, patience_ms);
  run("PRAGMA journal_mode=WAL");
  run("PRAGMA synchronous=FULL");  // tokens must not go back with the power
}

void Database::run(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw SqlError(sqlite3_errmsg(db_));
  }
}

bool Statement::next() {
  const int result = sqlite3_step(statement_);
  if (result != SQLITE_ROW && result != SQLITE_DONE) fail();
  return result == SQLITE_ROW;
}

int Statement::run() {
  next();
  return db_.changes();
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes == nullptr
             ? std::string()
             : std::string(bytes,
                           static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

}  // namespace sqlite_locks
