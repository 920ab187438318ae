// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import TintypeConcurrency

/// The keyboard of the terminal, which also delivers its answers.
///
/// Runs on a thread of its own, which sleeps until a key is pressed.
actor TerminalInput {
    private nonisolated let executor = ThreadExecutor(name: "tintype-keys")
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private nonisolated let descriptor: CInt
    /// Readable once a wait has been cancelled.
    private nonisolated let wakeup: CInt
    private var hasEnded = false

    /// Opens the terminal that the process may read from; returns `nil` without one.
    ///
    /// - Throws: `ThreadError` if the system refuses the thread.
    static func open() throws(ThreadError) -> TerminalInput? {
        // Standard input may be anything; the terminal is known by this name, whatever it is.
        let descriptor = Glibc.open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        let wakeup = cshims_eventfd()
        // From the background, a read would stop the process.
        guard wakeup >= 0, tcgetpgrp(descriptor) == getpgrp() else {
            close(descriptor)
            if wakeup >= 0 { close(wakeup) }
            return nil
        }
        let input = TerminalInput(descriptor: descriptor, wakeup: wakeup)
        try input.executor.start()
        return input
    }

    private init(descriptor: CInt, wakeup: CInt) {
        self.descriptor = descriptor
        self.wakeup = wakeup
    }

    deinit {
        close(self.descriptor)
        close(self.wakeup)
        self.executor.shutdown()
    }

    /// Runs `body` while keys come one by one and are not shown; restores the terminal afterwards.
    ///
    /// `body` gets no input if the terminal cannot do that, because it would show its answers and deliver them by
    /// lines.
    nonisolated func reading<Result>(_ body: (TerminalInput?) async throws -> Result) async rethrows -> Result {
        defer { TerminalMode.leave() }
        return try await body(TerminalMode.enter(self.descriptor) ? self : nil)
    }

    /// Asks the terminal, and returns what it has answered until it was done or the time is over.
    nonisolated func answers(to query: String, within timeout: Duration) async -> TerminalAnswers {
        let answers = await self.wakingUp { await self.readAnswers(to: query, within: timeout) }
        // Later input is not for the shell.
        if !answers.isComplete { TerminalMode.discardInput() }
        return answers
    }

    /// Returns true when a key is pressed; returns false when the task is cancelled, or if no key can come.
    nonisolated func waitForKey() async -> Bool {
        await self.wakingUp { await self.readKey() }
    }

    /// Lets a cancellation end the wait for what can be read.
    private nonisolated func wakingUp<Result>(_ wait: () async -> Result) async -> Result {
        await withTaskCancellationHandler(operation: wait) {
            var one: UInt64 = 1
            _ = Glibc.write(self.wakeup, &one, MemoryLayout<UInt64>.size)
        }
    }

    private func readAnswers(to query: String, within timeout: Duration) -> TerminalAnswers {
        self.forgetWakeups()
        var answers = TerminalAnswers()
        let clock = ContinuousClock()
        let end = clock.now + timeout
        guard self.write(query) else { return answers }
        while !answers.isComplete, !Task.isCancelled {
            let rest = max(.zero, clock.now.duration(to: end)) / .milliseconds(1)
            guard let bytes = self.read(within: CInt(rest.rounded(.up))) else { break }
            answers.read(bytes)
        }
        return answers
    }

    private func readKey() -> Bool {
        self.forgetWakeups()
        var answers = TerminalAnswers()
        // A cancellation from here on wakes the wait.
        while !Task.isCancelled, !answers.hasKey {
            guard let bytes = self.read(within: -1) else { break }
            answers.read(bytes)
        }
        return answers.hasKey
    }

    /// Returns the input within so many milliseconds, -1 for ever; `nil` without any.
    private func read(within milliseconds: CInt) -> ArraySlice<UInt8>? {
        guard !self.hasEnded else { return nil }
        var sources = [
            pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: self.wakeup, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&sources, 2, milliseconds) > 0, sources[1].revents == 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 1_024)
        let count = Glibc.read(self.descriptor, &bytes, bytes.count)
        guard count > 0 else {
            self.hasEnded = count == 0 || errno != EINTR
            return self.hasEnded ? nil : []
        }
        return bytes[..<count]
    }

    private func forgetWakeups() {
        var source = pollfd(fd: self.wakeup, events: Int16(POLLIN), revents: 0)
        guard poll(&source, 1, 0) > 0 else { return }
        var count: UInt64 = 0
        _ = Glibc.read(self.wakeup, &count, MemoryLayout<UInt64>.size)
    }

    private func write(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { Output.write(UnsafeRawBufferPointer($0), to: self.descriptor) } == 0
    }
}
