#pragma once
// The terminal that a session is typed on: its modes, its size, and bytes in
// and out. A terminal's mode is the process's affair, so there is one at a time
// (CHECK); signals that stop the process or end it leave the mode as it was.
#include <string>
#include <string_view>

namespace unisono::host {

struct TerminalSize {
  int columns = 80, rows = 24;
};
/// What a terminal says of itself; 80 by 24 if nothing that makes sense.
TerminalSize terminal_size(int descriptor);

/// Not thread-safe.
class Terminal {
 public:
  enum class Mode {
    own,      // as it was found
    editing,  // each key comes at once, and is not shown; none is a signal
    running,  // likewise, but Ctrl-C, Ctrl-Z and Ctrl-\ are signals
  };
  /// For the two descriptors, which are of a terminal and stay open.
  Terminal(int input, int output);
  /// In its own mode again.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void set(Mode mode);
  /// Stops the process, as Ctrl-Z does; comes back when it goes on.
  void suspend();

  TerminalSize size() const { return terminal_size(output_); }

  /// All of the text, unless the terminal is gone: `closed` then says so.
  void write(std::string_view text);
  bool closed() const { return closed_; }

  enum class Event {
    bytes,    // there is something to be read
    resized,  // or the process was stopped, and goes on: draw again
    nothing,  // in that time
    ended,    // no byte will come any more
  };
  /// Waits for so many milliseconds; -1: for ever.
  Event wait(int milliseconds);
  /// Appends what has come, after Event::bytes; false at the end.
  bool read(std::string& to);

  /// Whether a terminal of this name ($TERM) obeys what an editor writes.
  static bool can_edit(const char* name);

 private:
  int input_, output_;
  bool closed_ = false;
};

}  // namespace unisono::host
