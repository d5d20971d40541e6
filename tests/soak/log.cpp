// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <system_error>

namespace dlock::soak {

const char* to_string(Note note) noexcept {
  switch (note) {
    case Note::wanted:
      return "wants";
    case Note::given_up:
      return "gives up";
    case Note::granted:
      return "is granted";
    case Note::extended:
      return "is extended";
    case Note::releasing:
      return "releases";
    case Note::told_lost:
      return "is told lost";
    case Note::held_up:
      return "was held up";
    case Note::odd:
      return "odd:";
    case Note::refused:
      return "got nothing:";
    case Note::in_store:
      return "holds in";
    case Note::turned_away:
      return "is turned away:";
  }
  return "?";
}

LogWriter::LogWriter(const std::filesystem::path& file)
    : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), file.string());
}

LogWriter::~LogWriter() { ::close(fd_); }

void LogWriter::write(const Line& line) const {
  const std::string text =
      fmt::format("{} {} {} {} {} {} {}\n", static_cast<int>(line.note),
                  line.at.time_since_epoch().count(), line.actor, line.grant, line.token,
                  line.until.time_since_epoch().count(), line.name.empty() ? "-" : line.name);
  if (::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::system_error(errno, std::generic_category(), "the soak's log");
  }
}

std::vector<Line> LogReader::read() {
  if (!stream_.is_open()) stream_.open(file_);
  std::vector<Line> lines;
  stream_.clear();
  std::ostringstream more;
  more << stream_.rdbuf();
  rest_ += more.str();
  std::size_t begin = 0;
  for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    std::istringstream fields(rest_.substr(begin, end - begin));
    begin = end + 1;
    Line line;
    int note = 0;
    std::int64_t at = 0;
    std::int64_t until = 0;
    fields >> note >> at >> line.actor >> line.grant >> line.token >> until >> std::ws;
    std::getline(fields, line.name);
    if (!fields && !fields.eof()) throw std::runtime_error("the soak's log cannot be read");
    line.note = static_cast<Note>(note);
    line.at = TimePoint(Duration(at));
    line.until = TimePoint(Duration(until));
    lines.push_back(std::move(line));
  }
  rest_.erase(0, begin);
  return lines;
}

}  // namespace dlock::soak
