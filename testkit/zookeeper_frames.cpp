// SPDX-License-Identifier: Apache-2.0
#include "testkit/zookeeper_frames.hpp"

#include <algorithm>
#include <cstddef>

namespace dlock::testkit {

namespace {

// ZooKeeper's default jute.maxbuffer is a little under 1 MB; clients refuse far smaller than this.
constexpr std::uint32_t longest_frame = 64 * 1024 * 1024;

constexpr std::int32_t notification_xid = -1;

// Reads big-endian fields; running over the end sets `bad` and gives zeros.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::int64_t number(std::size_t size) {
    if (bytes_.size() < size) {
      bad_ = true;
      bytes_ = {};
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[i]);
    }
    bytes_.remove_prefix(size);
    if (size == 4) return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
    return static_cast<std::int64_t>(value);
  }
  std::int32_t int32() { return static_cast<std::int32_t>(number(4)); }
  std::int64_t int64() { return number(8); }
  std::string string() {
    const std::int32_t size = int32();
    if (size < 0 || static_cast<std::size_t>(size) > bytes_.size()) return {};
    std::string value(bytes_.substr(0, static_cast<std::size_t>(size)));
    bytes_.remove_prefix(value.size());
    return value;
  }
  bool bad() const { return bad_; }

 private:
  std::string_view bytes_;
  bool bad_ = false;
};

bool starts_with_a_path(std::int32_t op) {
  static constexpr std::int32_t codes[] = {
      opcode::create,        opcode::remove,  opcode::exists,          opcode::get_data,
      opcode::set_data,      opcode::sync,    opcode::check,           opcode::get_children,
      opcode::get_children2, opcode::create2, opcode::create_container};
  return std::find(std::begin(codes), std::end(codes), op) != std::end(codes);
}

}  // namespace

std::vector<std::string> FrameAssembler::push(std::string_view bytes) {
  rest_.append(bytes);
  std::vector<std::string> frames;
  while (framed_ && rest_.size() >= 4) {
    const auto length = static_cast<std::uint32_t>(Reader(rest_).number(4));
    framed_ = length <= longest_frame;
    if (!framed_ || rest_.size() < length + std::size_t{4}) break;
    frames.push_back(rest_.substr(0, length + std::size_t{4}));
    rest_.erase(0, frames.back().size());
  }
  if (!framed_ && !rest_.empty()) frames.push_back(std::exchange(rest_, {}));
  return frames;
}

std::optional<Frame> FrameDecoder::from_client(std::string_view bytes) {
  Reader in(bytes);
  Frame frame;
  in.int32();  // length
  if (!std::exchange(client_connected_, true)) {
    frame.kind = FrameKind::connect_request;
    in.int32();  // protocol version
    frame.zxid = in.int64();
    frame.session_timeout = in.int32();
    frame.session = in.int64();
  } else {
    frame.kind = FrameKind::request;
    frame.xid = in.int32();
    frame.opcode = in.int32();
    if (in.bad()) return std::nullopt;
    if (starts_with_a_path(frame.opcode)) frame.path = in.string();
    waiting_.emplace(frame.xid, frame.opcode);
    return frame;
  }
  if (in.bad()) return std::nullopt;
  return frame;
}

std::optional<Frame> FrameDecoder::from_server(std::string_view bytes) {
  Reader in(bytes);
  Frame frame;
  in.int32();  // length
  if (!std::exchange(server_connected_, true)) {
    frame.kind = FrameKind::connect_response;
    in.int32();  // protocol version
    frame.session_timeout = in.int32();
    frame.session = in.int64();
    if (in.bad()) return std::nullopt;
    return frame;
  }
  frame.xid = in.int32();
  frame.zxid = in.int64();
  frame.error = in.int32();
  if (frame.xid == notification_xid) {
    frame.kind = FrameKind::notification;
    frame.watch_event = in.int32();
    in.int32();  // session state
    frame.path = in.string();
  } else {
    frame.kind = FrameKind::reply;
    const auto request = waiting_.find(frame.xid);
    if (request != waiting_.end()) {
      frame.opcode = request->second;
      waiting_.erase(request);
    }
  }
  if (in.bad()) return std::nullopt;
  return frame;
}

struct ZooKeeperFrames::State {
  struct Once {
    FrameKind kind;
    std::int32_t opcode;
    Verdict verdict;
  };

  mutable std::mutex mutex;
  Rule rule;
  std::deque<Once> once;
  std::vector<Frame> log;

  Verdict judge(const Frame& frame) {
    Rule asked;
    {
      const std::lock_guard lock(mutex);
      log.push_back(frame);
      const auto match = std::find_if(once.begin(), once.end(), [&](const Once& wanted) {
        return wanted.kind == frame.kind &&
               (wanted.opcode == frame.opcode || frame.kind == FrameKind::notification);
      });
      if (match != once.end()) {
        const Verdict verdict = match->verdict;
        once.erase(match);
        return verdict;
      }
      asked = rule;
    }
    return asked ? asked(frame) : Verdict::forward;
  }

  template <typename Predicate>
  std::uint64_t count(Predicate predicate) const {
    const std::lock_guard lock(mutex);
    return static_cast<std::uint64_t>(std::count_if(log.begin(), log.end(), predicate));
  }
};

ZooKeeperFrames::ZooKeeperFrames() : state_(std::make_shared<State>()) {}

Filter ZooKeeperFrames::filter() {
  struct Stream {
    FrameAssembler from_client, from_server;
    FrameDecoder decoder;
  };
  auto streams = std::make_shared<std::map<ConnectionId, Stream>>();
  return [state = state_, streams](Direction direction, ConnectionId id, std::string_view bytes) {
    Stream& stream = (*streams)[id];
    const bool up = direction == Direction::to_server;
    FrameAssembler& assembler = up ? stream.from_client : stream.from_server;
    std::vector<Piece> pieces;
    for (std::string& raw : assembler.push(bytes)) {
      Verdict verdict = Verdict::forward;
      if (assembler.framed()) {
        auto frame = up ? stream.decoder.from_client(raw) : stream.decoder.from_server(raw);
        if (frame) {
          frame->connection = id;
          frame->at = Clock::now();
          verdict = state->judge(*frame);
        }
      }
      pieces.push_back({std::move(raw), verdict});
    }
    return pieces;
  };
}

void ZooKeeperFrames::set_rule(Rule rule) {
  const std::lock_guard lock(state_->mutex);
  state_->rule = std::move(rule);
}

void ZooKeeperFrames::once(FrameKind kind, std::int32_t opcode, Verdict verdict) {
  const std::lock_guard lock(state_->mutex);
  state_->once.push_back({kind, opcode, verdict});
}

std::size_t ZooKeeperFrames::pending_once() const {
  const std::lock_guard lock(state_->mutex);
  return state_->once.size();
}

std::uint64_t ZooKeeperFrames::requests(std::int32_t opcode) const {
  return state_->count([&](const Frame& frame) {
    return frame.kind == FrameKind::request && frame.opcode == opcode;
  });
}

std::uint64_t ZooKeeperFrames::replies(std::int32_t opcode) const {
  return state_->count(
      [&](const Frame& frame) { return frame.kind == FrameKind::reply && frame.opcode == opcode; });
}

std::uint64_t ZooKeeperFrames::requests() const {
  return state_->count([](const Frame& frame) {
    return frame.kind == FrameKind::request && frame.opcode != opcode::ping;
  });
}

std::uint64_t ZooKeeperFrames::notifications() const {
  return state_->count([](const Frame& frame) { return frame.kind == FrameKind::notification; });
}

std::uint64_t ZooKeeperFrames::connects() const {
  return state_->count([](const Frame& frame) { return frame.kind == FrameKind::connect_request; });
}

std::uint64_t ZooKeeperFrames::round_trips() const {
  std::uint64_t trips = 0;
  std::map<ConnectionId, bool> client_spoke_last;
  for (const Frame& frame : log()) {
    if (frame.opcode == opcode::ping || frame.kind == FrameKind::notification) continue;
    const bool client = frame.kind == FrameKind::request;
    bool& spoke = client_spoke_last[frame.connection];
    if (client && !spoke) ++trips;
    spoke = client;
  }
  return trips;
}

std::vector<Frame> ZooKeeperFrames::log() const {
  const std::lock_guard lock(state_->mutex);
  return state_->log;
}

void ZooKeeperFrames::clear() {
  const std::lock_guard lock(state_->mutex);
  state_->log.clear();
}

}  // namespace dlock::testkit
