// SPDX-License-Identifier: Apache-2.0
//
// What runs on the server, atomically. The algorithm is in README.md; each script says what it
// takes and gives. The last argument of each is a tag that its reply ends with: replies come in
// order, and one that does not answer its own request means that the stream cannot be trusted. A
// reply is a list, or where nothing but a code is told `code tag`, which costs the server less.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace dlock::redis {

struct Script {
  explicit Script(std::string source);
  std::string text;
  std::string sha;  ///< as EVALSHA wants it
};

struct Scripts {
  Scripts();
  Script acquire;
  Script renew;
  Script release;
  Script release_unwanted;  ///< the same, sooner where nobody wants it
  Script evict;
  Script presence;
  Script inspect;
  Script record;
  Script seal;
  Script set_record;
  Script raise;
  Script note;
  Script set_note;
  Script acquire_in_order;  ///< with `fair`: fair_script.hpp
  Script time;
  // Under a plan's gate: gate_scripts.hpp.
  Script acquire_under;
  Script acquire_in_order_under;
  Script seal_under;
  Script set_record_under;
  Script claimed;
  Script highest;
  Script asked;
  // asking_scripts.hpp
  Script listen;
  Script ask;
  Script waiting_before;
  // adoption_scripts.hpp
  Script offer;
  Script adopt;
  // Semaphores: permits_scripts.hpp.
  Script acquire_permits;
  Script renew_permits;
  Script release_permits;
  Script inspect_permits;
  Script set_limit;
  Script evict_permits;
};

/// The first item of an answer with the key, its version and the tag: the key has a newer format.
inline constexpr std::int64_t kNewerFormat = 9;
/// The format of all texts beside a lock, with the stamp before its number.
inline constexpr unsigned kFormat = 1;
inline constexpr std::string_view kFormatStamp = "v=";

/// What acquire answers first.
enum class AcquireCode {
  busy = 0,
  granted = 1,
  already_ours = 2,
  no_token_left = 3,
  sealed = 4,
  gate_changed = 5,
  other_limit = 6,
  foreign = 7,
  granted_with_range = 8,
  late = 10,  ///< executed after its deadline; nothing was changed
};
/// What renew answers first.
enum class RenewCode { gone = 0, renewed = 1, taken = 2, evicted = 3 };
/// What release answers first.
enum class ReleaseCode { not_ours = 0, released = 1, released_alone = 2 };
/// What evict answers first.
enum class EvictCode {
  not_held = 0,
  evicted = 1,
  other_token = 2,
  sealed = 3,
  marked = 5,
  foreign = 6,
};
/// What ask answers first.
enum class AskCode { not_held = 0, listens = 1, other_token = 2, sealed = 3, unheard = 4 };
/// What the scripts of migrations and notes answer first. `found`: with what stands there;
/// `gate_changed`: with what the gate says.
enum class RecordCode { none = 0, done = 1, found = 2, no_token_left = 3, gate_changed = 4 };

const Scripts& scripts();

/// Of readers: readers_scripts.hpp.
struct ReaderScripts {
  ReaderScripts();
  Script acquire;
  Script renew;     ///< also steps down
  Script release;   ///< also of who may have stepped down
  Script withdraw;  ///< of a writer that has waited: who waits behind it may come in
};
const ReaderScripts& reader_scripts();

/// How long a free lock is kept for the waiter that was woken; the scripts know it, too.
inline constexpr std::chrono::milliseconds kFirstTry{500};

/// Of the channel that an instance (a UUID) listens on.
inline constexpr std::string_view kChannelPrefix = "dlock:wake:";

}  // namespace dlock::redis
