// SPDX-License-Identifier: Apache-2.0
//
// How many clients one release wakes, counted on the wire: sessions that all watch the holder's
// node, and dlock's managers, one for each waiter.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "compare/drivers/address.hpp"
#include "compare/drivers/zookeeper_session.hpp"
#include "compare/servers/store.hpp"
#include "compare/suite/safety.hpp"
#include "compare/suite/scenario.hpp"
#include "compare/suite/worker_process.hpp"
#include "testkit/zookeeper_frames.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;
using testkit::patience;

/// Everybody tries to make the one node, and watches it when it is there.
std::uint64_t naive_release(Context& context, const std::string& hosts,
                            testkit::ZooKeeperFrames& frames, std::int64_t waiters) {
  ZooKeeperSession holder(hosts);
  holder.create_ephemeral("/herd");
  std::vector<std::unique_ptr<ZooKeeperSession>> sessions;
  std::vector<ZooKeeperSession*> all;
  std::int64_t woken = 0;
  for (std::int64_t i = 0; i < waiters; ++i) {
    context.interrupt.check();
    sessions.push_back(std::make_unique<ZooKeeperSession>(hosts, std::chrono::seconds(60)));
    all.push_back(sessions.back().get());
    all.back()->watch("/herd", [&woken] { ++woken; });
  }
  frames.clear();
  const auto before = frames.notifications();
  holder.remove("/herd");
  ZooKeeperSession::drive_all(
      all, [&] { return woken == waiters; }, patience());
  return frames.notifications() - before;
}

/// The same with dlock, as many managers as waiters, in a process of theirs.
std::uint64_t our_release(Context& context, const std::string& url,
                          testkit::ZooKeeperFrames& frames, std::int64_t waiters) {
  Worker worker(context, object{{"program", "queue"}, {"url", url}, {"count", waiters}});
  worker.await("ready", patience());
  frames.clear();
  const auto before = frames.notifications();
  worker.command("go");
  worker.await("result", patience());  // the first in line has it
  return frames.notifications() - before;
}

}  // namespace

object measure_herd(Context& context, const object& scenario) {
  const auto store = make_store("zookeeper", Pace::working);
  store->start();
  boost::json::array rows, found;
  for (const auto& param : scenario.at("params").at(to_string(context.options.depth)).as_array()) {
    const auto waiters = param.to_number<std::int64_t>();
    testkit::ZooKeeperFrames frames;
    testkit::FaultProxy proxy(store->port(), frames.filter());
    const auto url = store->url_through(proxy.port());
    const auto naive = naive_release(context, parse_address(url).hosts, frames, waiters);
    const auto ours = our_release(context, url, frames, waiters);
    rows.push_back(object{{"waiters", waiters}, {"naive", naive}, {"ours", ours}});
    if (naive < static_cast<std::uint64_t>(waiters)) found.push_back("the herd did not come");
    if (ours > 3) {
      found.push_back(boost::json::string(
          fmt::format("a release woke {} of ours at {} waiters", ours, waiters)));
    }
  }
  return {{"herd", std::move(rows)}, {"contradictions", std::move(found)}};
}

}  // namespace dlock::compare
