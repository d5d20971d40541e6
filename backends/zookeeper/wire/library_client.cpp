// SPDX-License-Identifier: Apache-2.0
//
// The requests. How the library is driven is in library_client_loop.cpp.
#include "backends/zookeeper/wire/library_client.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <memory>

#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/wire/four_letter.hpp"
#include "backends/zookeeper/wire/library_client_request.hpp"
#include "dlock/detail/out_of_memory.hpp"

namespace dlock::zookeeper {
namespace {

NodeStat stat_of(const Stat* stat) {
  if (stat == nullptr) return {};
  return {stat->czxid, stat->ctime, stat->ephemeralOwner, stat->version, stat->mtime};
}

int flags_of(Client::Mode mode) {
  switch (mode) {
    case Client::Mode::persistent:
      return ZOO_PERSISTENT;
    case Client::Mode::container:
      return ZOO_CONTAINER;
    case Client::Mode::ephemeral_sequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
    case Client::Mode::ephemeral:
      return ZOO_EPHEMERAL;
  }
  return ZOO_PERSISTENT;
}

int length_of(std::string_view data) { return static_cast<int>(data.size()); }

/// The library trusts the server's count, and does not report that the names ended before it.
bool take_all(const String_vector* strings, std::vector<std::string>& into) {
  if (strings == nullptr || strings->count < 0) return false;
  if (strings->count > 0 && strings->data == nullptr) return false;
  for (std::int32_t i = 0; i < strings->count; ++i) {
    if (strings->data[i] == nullptr) return false;
    into.emplace_back(strings->data[i]);
  }
  return true;
}

}  // namespace

// The library calls these from a step, or from its close on a helper thread when the request has
// been completed and has no client any more. No exception goes through the library.
struct LibraryClient::Callbacks {
  static void done(const void* data, Reply reply) {
    const auto* const_request = static_cast<const Request*>(data);
    const std::unique_ptr<Request> request(const_cast<Request*>(const_request));
    if (request->client == nullptr) return;
    // A check that fails is a transaction like any other: the majority has agreed that it fails.
    const bool committed =
        request->write && (reply.rc == ZOK || (request->proof && reply.rc == ZNONODE));
    or_end([&] { request->client->finish(*request, std::move(reply), committed); });
  }
  static void on_void(int rc, const void* data) { done(data, {rc, {}, {}, {}}); }
  static void on_string(int rc, const char* value, const void* data) {
    on_string_stat(rc, value, nullptr, data);
  }
  static void on_string_stat(int rc, const char* value, const Stat* stat, const void* data) {
    Reply reply{rc, {}, {}, stat_of(stat)};
    if (value != nullptr) or_end([&] { reply.text = value; });
    done(data, std::move(reply));
  }
  static void on_stat(int rc, const Stat* stat, const void* data) {
    done(data, {rc, {}, {}, stat_of(stat)});
  }
  static void on_data(int rc, const char* value, int length, const Stat* stat, const void* data) {
    Reply reply{rc, {}, {}, stat_of(stat)};
    if (value != nullptr && length > 0) {
      or_end([&] { reply.text.assign(value, static_cast<std::size_t>(length)); });
    }
    done(data, std::move(reply));
  }
  static void on_children(int rc, const String_vector* strings, const Stat* stat,
                          const void* data) {
    Reply reply{rc, {}, {}, stat_of(stat)};
    or_end([&] {
      if (rc == ZOK && !take_all(strings, reply.children)) reply.rc = ZMARSHALLINGERROR;
    });
    done(data, std::move(reply));
  }
  /// Completes change_if. In a failed transaction the operations before the failed one have ZOK.
  static void on_change(int rc, const void* data) {
    const auto* request = static_cast<const Request*>(data);
    Reply reply{rc, {}, {}, {}};
    if (rc != ZOK && !is_loss(rc) && request->results[0].err != ZOK) reply.rc = kCheckFailed;
    if (rc == ZOK && !request->made.empty()) {
      // NOLINTNEXTLINE(readability-redundant-string-cstr): it ends there
      or_end([&] { reply.text = request->made.c_str(); });
      reply.stat.czxid = request->stamp.mzxid;
    }
    done(data, std::move(reply));
  }
  static void on_watch(zhandle_t*, int type, int, const char* path, void* context) {
    if (type == ZOO_SESSION_EVENT || path == nullptr) return;
    const auto event = type == ZOO_DELETED_EVENT ? WatchEvent::deleted
                       : type == ZOO_CHILD_EVENT ? WatchEvent::children
                                                 : WatchEvent::changed;
    auto& client = *static_cast<LibraryClient*>(context);
    or_end([&] { client.watch_events_.emplace_back(path, event); });
  }
};

LibraryClient::Request* LibraryClient::begin(bool write, const std::string* watched) {
  auto request = std::make_unique<Request>(*this, env_, write);
  if (watched != nullptr) request->watched = *watched;
  if (pending_.empty()) waiting_ = request->sent;
  pending_.push_back(request.get());
  return request.release();
}

PendingReply LibraryClient::submitted(Request* request, int rc) {
  auto pending = request->result;
  // Completes it later: a caller that retries in a loop must let others run.
  if (rc != ZOK) {
    std::unique_ptr<Request> owned(request);
    asio::post(env_.executor(), [rc, owned = std::move(owned)] {
      Reply refused;
      refused.rc = rc;
      if (owned->client != nullptr) owned->client->finish(*owned, std::move(refused), false);
    });
  }
  // The library may not have sent all bytes: only a step shows it.
  post_step();
  return pending;
}

void LibraryClient::finish(Request& request, Reply reply, bool committed) {
  pending_.erase(std::find(pending_.begin(), pending_.end(), &request));
  const auto now = env_.now();
  if (!is_loss(reply.rc) && now - waiting_ < options_.session_timeout / 5) unanswered_ = 0;
  waiting_ = now;
  if (!is_loss(reply.rc)) listener_->on_answer(request.sent, waiting_, committed);
  if (reply.rc == ZNOAUTH) listener_->on_access_denied();
  if (!request.watched.empty()) {
    const bool absent = reply.rc == ZNONODE;
    const bool is_written = reply.rc == ZOK && reply.stat.version > 0;
    const auto event = is_written                                      ? WatchEvent::written
                       : reply.rc == ZOK || (absent && request.always) ? WatchEvent::set
                       : absent                                        ? WatchEvent::absent
                                                                       : WatchEvent::failed;
    watch_events_.emplace_back(std::move(request.watched), event);
  }
  if (!request.forgotten.empty() && is_loss(reply.rc)) forget_watch_here(request.forgotten);
  request.result.set(std::move(reply));
}

PendingReply LibraryClient::create(const std::string& path, std::string_view data, Mode mode) {
  auto* request = begin(true);
  const auto* acl = options_.creator_acl ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  return submitted(request, zoo_acreate2(handle_, path.c_str(), data.data(), length_of(data), acl,
                                         flags_of(mode), &Callbacks::on_string_stat, request));
}

PendingReply LibraryClient::remove(const std::string& path) {
  auto* request = begin(true);
  return submitted(request, zoo_adelete(handle_, path.c_str(), -1, &Callbacks::on_void, request));
}

PendingReply LibraryClient::set(const std::string& path, std::string_view data) {
  auto* request = begin(true);
  return submitted(request, zoo_aset(handle_, path.c_str(), data.data(), length_of(data), -1,
                                     &Callbacks::on_stat, request));
}

PendingReply LibraryClient::set_version(const std::string& path, std::string_view data,
                                        std::int32_t version) {
  auto* request = begin(true);
  return submitted(request, zoo_aset(handle_, path.c_str(), data.data(), length_of(data), version,
                                     &Callbacks::on_stat, request));
}

PendingReply LibraryClient::remove_version(const std::string& path, std::int32_t version) {
  auto* request = begin(true);
  return submitted(request,
                   zoo_adelete(handle_, path.c_str(), version, &Callbacks::on_void, request));
}

PendingReply LibraryClient::exists(const std::string& path) {
  auto* request = begin(false);
  return submitted(request, zoo_aexists(handle_, path.c_str(), 0, &Callbacks::on_stat, request));
}

PendingReply LibraryClient::get(const std::string& path) {
  auto* request = begin(false);
  return submitted(request, zoo_aget(handle_, path.c_str(), 0, &Callbacks::on_data, request));
}

PendingReply LibraryClient::get_and_watch(const std::string& path) {
  auto* request = begin(false, &path);
  return submitted(request, zoo_awget(handle_, path.c_str(), &Callbacks::on_watch, this,
                                      &Callbacks::on_data, request));
}

PendingReply LibraryClient::exists_and_watch(const std::string& path) {
  auto* request = begin(false, &path);
  request->always = true;
  return submitted(request, zoo_awexists(handle_, path.c_str(), &Callbacks::on_watch, this,
                                         &Callbacks::on_stat, request));
}

PendingReply LibraryClient::children(const std::string& path) {
  auto* request = begin(false);
  return submitted(request,
                   zoo_aget_children2(handle_, path.c_str(), 0, &Callbacks::on_children, request));
}

PendingReply LibraryClient::children_and_watch(const std::string& path) {
  auto* request = begin(false);
  return submitted(request, zoo_awget_children2(handle_, path.c_str(), &Callbacks::on_watch, this,
                                                &Callbacks::on_children, request));
}

PendingReply LibraryClient::sync(const std::string& path) {
  auto* request = begin(false);
  return submitted(request, zoo_async(handle_, path.c_str(), &Callbacks::on_string, request));
}

PendingReply LibraryClient::prove(const std::string& path) {
  auto* request = begin(true);
  request->proof = true;
  zoo_op_t operation{};
  zoo_check_op_init(&operation, path.c_str(), -1);
  return submitted(request, zoo_amulti(handle_, 1, &operation, request->results.data(),
                                       &Callbacks::on_void, request));
}

PendingReply LibraryClient::mark_and_remove(const std::string& path, std::string_view data) {
  auto* request = begin(true);
  std::array<zoo_op_t, 2> operations{};
  zoo_set_op_init(&operations[0], path.c_str(), data.data(), length_of(data), -1, nullptr);
  zoo_delete_op_init(&operations[1], path.c_str(), -1);
  return submitted(request, zoo_amulti(handle_, 2, operations.data(), request->results.data(),
                                       &Callbacks::on_void, request));
}

PendingReply LibraryClient::mark_and_replace(const std::string& path, std::string_view data,
                                             const std::string& heir, std::string_view text,
                                             Mode mode) {
  auto* request = begin(true);
  const auto* acl = options_.creator_acl ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  std::array<zoo_op_t, 3> operations{};
  zoo_set_op_init(&operations[0], path.c_str(), data.data(), length_of(data), -1, nullptr);
  zoo_create_op_init(&operations[1], heir.c_str(), text.data(), length_of(text), acl,
                     flags_of(mode), nullptr, 0);
  zoo_delete_op_init(&operations[2], path.c_str(), -1);
  return submitted(request, zoo_amulti(handle_, 3, operations.data(), request->results.data(),
                                       &Callbacks::on_void, request));
}

// The library cannot return the stat of a node that a transaction creates. All operations of a
// transaction have one number. So the transaction also writes the unchanged data of the node above
// all checked nodes, and returns that node's stat.
PendingReply LibraryClient::change_if(const Check& check, const Change& change) {
  auto* request = begin(true);
  const auto* acl = options_.creator_acl ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  const auto* const path = change.path.c_str();
  const auto above = check.path.substr(0, check.path.rfind('/'));
  std::array<zoo_op_t, 4> operations{};
  int count = 1;
  zoo_check_op_init(&operations[0], check.path.c_str(), check.version);
  switch (change.kind) {
    case Change::Kind::create:
      request->made.resize(change.path.size() + 16);
      zoo_set_op_init(&operations[1], above.c_str(), "", 0, -1, &request->stamp);
      zoo_create_op_init(&operations[2], path, change.data.data(), length_of(change.data), acl,
                         flags_of(change.mode), request->made.data(),
                         static_cast<int>(request->made.size()));
      count = 3;
      break;
    case Change::Kind::set:
      zoo_set_op_init(&operations[1], path, change.data.data(), length_of(change.data),
                      change.version, nullptr);
      count = 2;
      break;
    case Change::Kind::remove:
      zoo_delete_op_init(&operations[1], path, change.version);
      count = 2;
      break;
    case Change::Kind::replace:
      zoo_set_op_init(&operations[1], path, change.data.data(), length_of(change.data), -1,
                      nullptr);
      zoo_create_op_init(&operations[2], change.heir.c_str(), change.text.data(),
                         length_of(change.text), acl, ZOO_PERSISTENT, nullptr, 0);
      zoo_delete_op_init(&operations[3], path, -1);
      count = 4;
      break;
  }
  return submitted(request, zoo_amulti(handle_, count, operations.data(), request->results.data(),
                                       &Callbacks::on_change, request));
}

void LibraryClient::forget_watch(const std::string& path) {
  if (handle_ == nullptr || state_ == State::over) return;
  if (state_ != State::connected) return forget_watch_here(path);
  auto* request = begin(false);
  request->forgotten = path;
  // The parameter's type is a slip of the library's header: it takes the function itself.
  auto* completion = reinterpret_cast<void_completion_t*>(&Callbacks::on_void);
  submitted(request, zoo_aremove_all_watches(handle_, path.c_str(), ZWATCHTYPE_DATA, 0, completion,
                                             request));
}

// On the next connection the library sets all watches again that it still has.
void LibraryClient::forget_children(const std::string& path) {
  if (handle_ == nullptr || state_ == State::over) return;
  zoo_aremove_all_watches(handle_, path.c_str(), ZWATCHTYPE_CHILD, 1, nullptr, nullptr);
}

void LibraryClient::forget_watch_here(const std::string& path) {
  zoo_aremove_all_watches(handle_, path.c_str(), ZWATCHTYPE_DATA, 1, nullptr, nullptr);
}

Library& c_library() noexcept {
  class CLibrary final : public Library {
   public:
    std::shared_ptr<Client> make_client(Env& env, Client::Options options,
                                        Client::Listener& listener) override {
      return std::make_shared<LibraryClient>(env, std::move(options), listener);
    }
    asio::awaitable<std::string> ask_server(Env& env, std::string address, std::string word,
                                            TimePoint deadline) override {
      return zookeeper::ask_server(env, std::move(address), std::move(word), deadline);
    }
  };
  static CLibrary library;
  return library;
}

}  // namespace dlock::zookeeper
