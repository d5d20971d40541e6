// SPDX-License-Identifier: Apache-2.0
#include "compare/drivers/zookeeper_session.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace dlock::compare {

namespace {

/// What a callback of the library fills; it lives until the answer has come.
struct Answer {
  bool done = false;
  int code = 0;
  std::string path;
  Stat stat{};
  std::vector<std::string> children;
};

void on_void(int code, const void* data) {
  auto* answer = static_cast<Answer*>(const_cast<void*>(data));
  answer->code = code;
  answer->done = true;
}

void on_created(int code, const char* path, const Stat* stat, const void* data) {
  auto* answer = static_cast<Answer*>(const_cast<void*>(data));
  if (path != nullptr) answer->path = path;
  if (stat != nullptr) answer->stat = *stat;
  on_void(code, data);
}

void on_stat(int code, const Stat*, const void* data) { on_void(code, data); }

void on_children(int code, const String_vector* names, const void* data) {
  auto* answer = static_cast<Answer*>(const_cast<void*>(data));
  if (names != nullptr) answer->children.assign(names->data, names->data + names->count);
  on_void(code, data);
}

void on_watch(zhandle_t*, int type, int, const char*, void* context) {
  if (type == ZOO_SESSION_EVENT) return;
  const std::unique_ptr<std::function<void()>> gone(static_cast<std::function<void()>*>(context));
  (*gone)();
}

void ignore_session_events(zhandle_t*, int, int, const char*, void*) {}

void check(int code, const char* what) {
  if (code != ZOK) throw std::runtime_error(fmt::format("zookeeper: {}: {}", what, zerror(code)));
}

}  // namespace

ZooKeeperSession::ZooKeeperSession(const std::string& hosts, std::chrono::milliseconds timeout,
                                   std::chrono::milliseconds patience) {
  zoo_set_debug_level(static_cast<ZooLogLevel>(0));
  handle_ = zookeeper_init(hosts.c_str(), &ignore_session_events, static_cast<int>(timeout.count()),
                           nullptr, nullptr, 0);
  if (handle_ == nullptr) throw std::runtime_error("zookeeper: cannot use the address " + hosts);
  zoo_set_servers_resolution_delay(handle_, -1);
  try {
    drive_until([this] { return zoo_state(handle_) == ZOO_CONNECTED_STATE; },
                Clock::now() + patience);
  } catch (...) {
    zookeeper_close(handle_);
    throw;
  }
}

ZooKeeperSession::~ZooKeeperSession() { zookeeper_close(handle_); }

ZooKeeperSession::Interest ZooKeeperSession::interest() {
  int wanted = 0;
  timeval timeout{};
  Interest result;
  const int code = zookeeper_interest(handle_, &result.descriptor, &wanted, &timeout);
  if (code != ZOK) result.descriptor = -1;
  if ((wanted & ZOOKEEPER_READ) != 0) result.events |= POLLIN;
  if ((wanted & ZOOKEEPER_WRITE) != 0) result.events |= POLLOUT;
  result.timeout_ms = static_cast<int>(timeout.tv_sec * 1000 + timeout.tv_usec / 1000);
  return result;
}

void ZooKeeperSession::process(short events) {
  int ready = 0;
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) ready |= ZOOKEEPER_READ;
  if ((events & POLLOUT) != 0) ready |= ZOOKEEPER_WRITE;
  zookeeper_process(handle_, ready);
}

void ZooKeeperSession::drive_until(const std::function<bool()>& done, Clock::time_point deadline) {
  drive_all({this}, done, deadline);
}

void ZooKeeperSession::drive_all(const std::vector<ZooKeeperSession*>& sessions,
                                 const std::function<bool()>& done, Clock::time_point deadline) {
  std::vector<pollfd> polled(sessions.size());
  while (!done()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) throw std::runtime_error("zookeeper: no answer in time");
    int timeout = static_cast<int>(std::min<std::int64_t>(left, 1000));
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      const Interest one = sessions[i]->interest();
      polled[i] = {one.descriptor, one.events, 0};
      timeout = std::min(timeout, one.descriptor < 0 ? 10 : std::max(one.timeout_ms, 1));
    }
    ::poll(polled.data(), polled.size(), timeout);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      if (polled[i].revents != 0) sessions[i]->process(polled[i].revents);
    }
  }
}

void ZooKeeperSession::make(const std::string& path) {
  Answer answer;
  check(zoo_acreate2(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, &on_created, &answer),
        "create");
  drive_until([&] { return answer.done; });
  if (answer.code != ZNODEEXISTS) check(answer.code, "create");
}

ZooKeeperSession::Created ZooKeeperSession::create_sequential(const std::string& prefix) {
  Answer answer;
  check(zoo_acreate2(handle_, prefix.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                     ZOO_EPHEMERAL | ZOO_SEQUENCE, &on_created, &answer),
        "create");
  drive_until([&] { return answer.done; });
  check(answer.code, "create");
  return {answer.path, answer.stat.czxid};
}

bool ZooKeeperSession::create_ephemeral(const std::string& path) {
  Answer answer;
  check(zoo_acreate2(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, &on_created,
                     &answer),
        "create");
  drive_until([&] { return answer.done; });
  if (answer.code == ZNODEEXISTS) return false;
  check(answer.code, "create");
  return true;
}

ZooKeeperSession::Place ZooKeeperSession::join_line(const std::string& parent,
                                                    const std::string& prefix) {
  Answer created, listed;
  check(zoo_acreate2(handle_, (parent + "/" + prefix).c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                     ZOO_EPHEMERAL | ZOO_SEQUENCE, &on_created, &created),
        "create");
  const auto list = [](int code, const String_vector* names, const Stat*, const void* data) {
    on_children(code, names, data);
  };
  const int sent = zoo_aget_children2(handle_, parent.c_str(), 0, list, &listed);
  drive_until([&] { return created.done && (sent != ZOK || listed.done); });
  check(created.code, "create");
  check(sent, "list");
  check(listed.code, "list");
  std::sort(listed.children.begin(), listed.children.end());
  return {{created.path, created.stat.czxid}, std::move(listed.children)};
}

bool ZooKeeperSession::exists(const std::string& path) {
  Answer answer;
  check(zoo_aexists(handle_, path.c_str(), 0, &on_stat, &answer), "exists");
  drive_until([&] { return answer.done; });
  if (answer.code == ZNONODE) return false;
  check(answer.code, "exists");
  return true;
}

void ZooKeeperSession::remove(const std::string& path) {
  Answer answer;
  check(zoo_adelete(handle_, path.c_str(), -1, &on_void, &answer), "delete");
  drive_until([&] { return answer.done; });
  if (answer.code != ZNONODE) check(answer.code, "delete");
}

bool ZooKeeperSession::watch(const std::string& path, std::function<void()> gone) {
  Answer answer;
  auto context = std::make_unique<std::function<void()>>(std::move(gone));
  // `get`, not `exists`: a node that is not there gets no watch.
  const auto on_data = [](int code, const char*, int, const Stat*, const void* data) {
    on_void(code, data);
  };
  check(zoo_awget(handle_, path.c_str(), &on_watch, context.get(), on_data, &answer), "watch");
  drive_until([&] { return answer.done; });
  if (answer.code == ZNONODE) return false;
  check(answer.code, "watch");
  static_cast<void>(context.release());  // the library's, until the watch fires
  return true;
}

void ZooKeeperSession::prove(const std::string& path) {
  Answer answer;
  zoo_op_t operation{};
  zoo_op_result_t result{};
  zoo_check_op_init(&operation, path.c_str(), -1);
  check(zoo_amulti(handle_, 1, &operation, &result, &on_void, &answer), "multi");
  drive_until([&] { return answer.done; });
  check(answer.code, "multi");
}

}  // namespace dlock::compare
