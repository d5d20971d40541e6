// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/sim_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cstring>

#include "backends/redis/error.hpp"
#include "tests/simulation/redis/server.hpp"

namespace dlock::simulation::redis {

SimStream::SimStream(std::shared_ptr<Client> client, const std::shared_ptr<Address>& address)
    : client_(std::move(client)), address_(address), connected_(client_->process) {}

SimStream::~SimStream() { close(); }

asio::awaitable<std::optional<error_code>> SimStream::connect(
    std::shared_ptr<production::DialStop> stop, TimePoint deadline) {
  const auto self = shared_from_this();
  const auto connected = connected_;
  stop->step([connected] { connected.set(asio::error::operation_aborted); });
  knock();
  const auto ec = co_await connected.get_until(deadline);
  stop->step_over();
  if (!ec || *ec) close();
  co_return ec;
}

// A SYN that is lost is sent again.
void SimStream::knock() {
  auto& world = client_->process.world();
  const bool cut = client_->is_cut();
  const auto pause = world.between(milliseconds(50), milliseconds(400));
  const auto travels = cut ? pause : client_->network.latency();
  world.after(travels, [weak = weak_from_this(), cut] {
    const auto stream = weak.lock();
    if (!stream || stream->closed_) return;
    if (cut || stream->client_->is_cut()) return stream->knock();
    const auto address = stream->address_.lock();
    const auto server = address ? address->server : nullptr;
    if (!server) return stream->answer_knock(asio::error::connection_refused);
    auto session =
        std::make_shared<Session>(stream->client_->process.world(), server, stream->client_, weak);
    stream->session_ = session;
    session->set_id(server->admit(session));
    stream->answer_knock({});
  });
}

void SimStream::answer_knock(error_code ec) {
  client_->process.world().after(client_->network.latency(), [weak = weak_from_this(), ec] {
    const auto stream = weak.lock();
    if (!stream || stream->closed_) return;
    stream->client_->process.deliver([connected = stream->connected_, ec] { connected.set(ec); });
  });
}

void SimStream::read_some(asio::mutable_buffer into, OnRead handler) {
  into_ = into;
  on_read_ = std::move(handler);
  client_->process.deliver([self = shared_from_this()] { self->pump(); });
}

void SimStream::pump() {
  if (!on_read_) return;
  if (inbox_.empty() && !failure_) return;
  auto handler = std::exchange(on_read_, {});
  const auto size = std::min(inbox_.size() - taken_, into_.size());
  if (size == 0 || closed_) return handler(failure_, 0);
  std::memcpy(into_.data(), inbox_.data() + taken_, size);
  taken_ += size;
  if (taken_ == inbox_.size()) {
    inbox_.clear();
    taken_ = 0;
  }
  handler({}, size);
}

// As a kernel does: taken at once, whatever becomes of it.
void SimStream::write_all(asio::const_buffer bytes, OnWritten handler) {
  // In parts: the reader moves all that it has when it has taken some.
  constexpr std::size_t kPart = std::size_t{16} * 1024;
  std::string_view left(static_cast<const char*>(bytes.data()), bytes.size());
  while (!left.empty()) {
    const auto part = left.substr(0, kPart);
    left.remove_prefix(part.size());
    commands_.feed(part);
    while (auto request = commands_.next()) take(std::move(*request));
  }
  client_->process.deliver(
      [self = shared_from_this(), handler = std::make_shared<OnWritten>(std::move(handler))] {
        (*handler)(self->failure_);
      });
}

void SimStream::take(production::Reply request) {
  const auto session = session_.lock();
  // A process that has crashed talks to nobody.
  if (closed_ || failure_ || !session || client_->crashed) return;
  Command command;
  for (auto& word : request.items) command.push_back(std::move(word.text));
  const auto fate = client_->network.fate(client_->process);
  if (!session->take_off(std::move(command), fate)) break_off();
}

void SimStream::close() noexcept {
  if (std::exchange(closed_, true)) return;
  if (const auto session = session_.lock(); session && !client_->crashed) {
    session->hang_up_later(client_->network.latency());
  }
  if (!failure_) failure_ = asio::error::operation_aborted;
  // Not from the destructor: nobody reads then.
  if (on_read_) client_->process.deliver([self = shared_from_this()] { self->pump(); });
}

void SimStream::arrive(std::string bytes) {
  client_->process.deliver([self = shared_from_this(), bytes = std::move(bytes)] {
    self->inbox_ += bytes;
    self->pump();
  });
}

void SimStream::break_off() { fail(asio::error::connection_reset); }

void SimStream::fail(error_code ec) {
  session_.reset();
  client_->process.deliver([self = shared_from_this(), ec] {
    if (!self->failure_) self->failure_ = ec;
    self->pump();
  });
}

asio::awaitable<production::Opened> open_simulated(
    std::shared_ptr<Client> client, std::weak_ptr<Address> address,
    std::shared_ptr<const production::DialSettings> settings,
    std::shared_ptr<production::DialStop> stop, TimePoint deadline) {
  const auto stream = std::make_shared<SimStream>(client, address.lock());
  const auto ec = co_await stream->connect(stop, deadline);
  production::Opened opened;
  if (ec && !*ec) {
    opened.stream = stream;
  } else {
    const auto why = ec ? ec->message() : std::string("no answer in time");
    opened.failure = {production::Error::not_connected,
                      fmt::format("{}: {}", settings->address(), why)};
  }
  co_return opened;
}

}  // namespace dlock::simulation::redis
