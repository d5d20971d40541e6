// SPDX-License-Identifier: Apache-2.0
//
// The scripts, which the server executes atomically. README.md describes the algorithm. Each script
// documents its arguments and its reply. The last argument is a tag that the reply ends with.
// Replies arrive in order; a reply with another request's tag means that the stream is broken. A
// reply is a list. A reply that has only a code is a `code tag` text, which costs the server less.
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
  Script release_unwanted;  ///< as release; faster if no client waits
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

/// The first item of acquire's reply.
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
/// The first item of renew's reply.
enum class RenewCode { gone = 0, renewed = 1, taken = 2, evicted = 3 };
/// The first item of release's reply.
enum class ReleaseCode { not_ours = 0, released = 1, released_alone = 2 };
/// The first item of evict's reply.
enum class EvictCode {
  not_held = 0,
  evicted = 1,
  other_token = 2,
  sealed = 3,
  marked = 5,
  foreign = 6,
};
/// The first item of ask's reply.
enum class AskCode { not_held = 0, listens = 1, other_token = 2, sealed = 3, unheard = 4 };
/// The first item of the replies of migration and note scripts. `found`: the stored text follows;
/// `gate_changed`: the gate's text follows.
enum class RecordCode { none = 0, done = 1, found = 2, no_token_left = 3, gate_changed = 4 };

const Scripts& scripts();

/// The scripts of readers: readers_scripts.hpp.
struct ReaderScripts {
  ReaderScripts();
  Script acquire;
  Script renew;     ///< also downgrades
  Script release;   ///< also for a claim that may have been downgraded
  Script withdraw;  ///< removes a writer that has waited; the readers behind it may acquire
};
const ReaderScripts& reader_scripts();

/// How long a free lock is reserved for the notified waiter. The scripts contain the same value.
inline constexpr std::chrono::milliseconds kFirstTry{500};

/// The prefix of the channel on which an instance (a UUID) receives messages.
inline constexpr std::string_view kChannelPrefix = "dlock:wake:";

}  // namespace dlock::redis
