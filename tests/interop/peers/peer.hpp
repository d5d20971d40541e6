// SPDX-License-Identifier: Apache-2.0
//
// A client of another make on one kind of store: how its program is started, and how its locks are
// called there. One file for each client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "testkit/process.hpp"
#include "tests/interop/support/shared_store.hpp"

namespace dlock::interop {

struct Peer {
  std::string name;
  std::unique_ptr<SharedStore> (*start_store)();
  /// Of a lock in the store, with `{name}` in it: ours are called the same.
  std::string key;
  /// Throws MissingPackage. `lease`: what it asks the store for, a session's or a key's.
  std::function<testkit::ProcessOptions(const SharedStore& store, std::chrono::milliseconds lease)>
      program;
  bool extends = false;  ///< its program knows `extend`
  /// It says `done` of the release of a lock that it has lost.
  bool silent_about_loss = false;
};

std::ostream& operator<<(std::ostream& out, const Peer* peer);

/// Who holds, the other does not: both ways.
const Peer* curator();
/// A LeaderSelector, whose mutex is ours.
const Peer* curator_leader();
const Peer* kazoo();
const Peer* redis_py();
const Peer* node_redlock();
const Peer* node_redlock_5();
const Peer* tooz_redis();
const Peer* tooz_memcached();
const std::vector<const Peer*>& sharing_peers();
/// `add` over three servers, one for each distribution of libmemcached.
const std::vector<const Peer*>& placing_peers();

/// We wait for them, and they do not wait for us.
const Peer* kazoo_alone();
/// Of eight leases; a format of its own.
const Peer* kazoo_semaphore();
const Peer* tooz_zookeeper();
const Peer* curator_write_lock();
/// Readers and writers, which share a lock with ours if our exclusive ones are writers.
struct ReadWritePeer {
  const Peer* reader;
  const Peer* writer;
};
const ReadWritePeer& curator_readers();
const ReadWritePeer& kazoo_readers();
/// One permit of three of a semaphore.
const Peer* curator_permits();
/// Nobody waits for anybody.
const Peer* curator_semaphore();
const Peer* tooz_folder();

/// The program `file` of tests/interop/clients. Throws MissingPackage.
testkit::ProcessOptions python(const std::string& file, std::vector<std::string> arguments);

}  // namespace dlock::interop
