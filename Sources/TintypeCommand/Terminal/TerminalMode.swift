// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// The settings of the process's terminal while keys come one by one, and what they were before.
///
/// The process has at most one terminal, and must give it back however it ends.
enum TerminalMode {
    private struct Saved {
        let descriptor: CInt
        let settings: termios
        var hasStrayInput = false
    }

    private static let saved = Locked<Saved?>(nil)

    /// Lets keys come one by one, without showing them; returns `false` if that is impossible.
    ///
    /// `Ctrl-C` still interrupts. The keys that would stop the process, or end it with a core file, become ordinary
    /// keys, because they would leave the terminal in this mode.
    static func enter(_ descriptor: CInt) -> Bool {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { return false }
        self.saved.withLock { $0 = Saved(descriptor: descriptor, settings: settings) }
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        withUnsafeMutableBytes(of: &settings.c_cc) { keys in
            keys[Int(VMIN)] = 1
            keys[Int(VTIME)] = 0
            for key in [VSUSP, VQUIT] { keys[Int(key)] = 0 }
        }
        return tcsetattr(descriptor, TCSADRAIN, &settings) == 0
    }

    /// Gives the terminal back as it was.
    static func leave() {
        guard let saved = self.saved.withLock({ $0 }) else { return }
        var settings = saved.settings
        // Waits until all is written; an interrupt meanwhile has to find what it gives back.
        tcsetattr(saved.descriptor, saved.hasStrayInput ? TCSAFLUSH : TCSADRAIN, &settings)
        self.saved.withLock { $0 = nil }
    }

    /// Lets what is typed, or answered late, until the terminal is given back be forgotten.
    static func discardInput() {
        self.saved.withLock { $0?.hasStrayInput = true }
    }

    /// Gives the terminal back in a process that ends at once: ends what was being written, without waiting.
    static func leaveAtOnce() {
        guard let saved = self.saved.withLock({ $0 }) else { return }
        var settings = saved.settings
        tcsetattr(saved.descriptor, TCSANOW, &settings)
        var source = pollfd(fd: saved.descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&source, 1, 0) > 0 else { return }
        let end = Array("\u{1B}\\\(TerminalScreen.showCursor)\u{1B}[0m\n".utf8)
        _ = end.withUnsafeBytes { Glibc.write(saved.descriptor, $0.baseAddress, $0.count) }
    }
}
