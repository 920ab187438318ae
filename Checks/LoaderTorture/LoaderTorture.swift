// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeOrderStorm
import TintypeTestSupport

/// Runs two hundred tasks that load a thousand images in every possible way and cancel at random, and then storms of
/// reloads.
///
///     LoaderTorture [SECONDS [SEED]]          default 60 seconds, and a seed that is drawn and printed
///     LoaderTorture order [SECONDS [SEED]]    only the storms of reloads; default 300 seconds
///
/// The storms (``OrderStorm``) take five times as long as the round before them.
///
/// A short round comes first, so that later counts include the objects that the process creates once. Rounds with an
/// even seed wait for their last loads, and other rounds cancel them. Exits with 1 if a call returns the wrong result,
/// if a load does not end exactly once, or if anything remains after the loader is gone.
@main
enum LoaderTorture {
    static func main() async {
        Self.leaveOutThreadCaches()
        var arguments = CommandLine.arguments.dropFirst()
        let isOrderOnly = arguments.first == "order"
        if isOrderOnly { arguments.removeFirst() }
        let seconds = arguments.first.flatMap { Double($0) } ?? (isOrderOnly ? 300 : 60)
        let orderSeconds = isOrderOnly ? seconds : seconds * 5
        let seed = arguments.dropFirst().first.flatMap { UInt64($0) } ?? .random(in: 0..<1_000_000)
        let watchdog = Task {
            try await Task.sleep(for: .seconds(seconds + orderSeconds + 240))
            Self.say("failed: a load or the shutdown does not end")
            exit(1)
        }
        defer { watchdog.cancel() }
        do {
            guard !isOrderOnly else { Self.end(try await Self.order(orderSeconds, seed)) }
            Self.say("loader: \(Round.taskCount) tasks, \(Images.count) images, \(seconds) s, seed \(seed)")
            let images = try await Images()
            let hasBegunWell = try await Self.round(images, seconds: min(5, seconds), seed: ~seed)
            let before = try Holdings.now()
            let hasPassed = try await Self.round(images, seconds: seconds, seed: seed)
            let isClean = await before.areBack()
            let isInOrder = try await Self.order(orderSeconds, seed)
            Self.end(hasBegunWell && hasPassed && isClean && isInOrder)
        } catch {
            Self.say("failed: \(error)")
            exit(1)
        }
    }

    /// Starts the program anew without glibc's caches of each thread, which fill up for minutes and count as used heap.
    private static func leaveOutThreadCaches() {
        guard getenv("GLIBC_TUNABLES") == nil else { return }
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1)
        // If this fails, the program continues with the caches.
        execv("/proc/self/exe", CommandLine.unsafeArgv)
    }

    private static func order(_ seconds: Double, _ seed: UInt64) async throws -> Bool {
        Self.say("order: storms of reloads, \(seconds) s, seed \(seed)")
        return try await OrderStorm.run(seconds: seconds, seed: seed)
    }

    private static func end(_ hasPassed: Bool) -> Never {
        self.say(hasPassed ? "passed" : "failed")
        exit(hasPassed ? 0 : 1)
    }

    /// Prints a line at once, so that a long run can be watched.
    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }

    private static func round(_ images: Images, seconds: Double, seed: UInt64) async throws -> Bool {
        let ledger = try await Round(images, seed: seed).run(seconds: seconds)
        // Lanes release their objects on their own threads.
        await until(within: .seconds(20)) { ledger.remains.isEmpty }
        for fault in ledger.faults + ledger.remains { Self.say("  wrong: \(fault)") }
        return ledger.faults.isEmpty && ledger.remains.isEmpty
    }
}

/// Looks at a condition until it holds or the time is over.
func until(within time: Duration, _ condition: () -> Bool) async {
    let end = ContinuousClock.now + time
    while !condition(), .now < end { try? await Task.sleep(for: .milliseconds(20)) }
}
