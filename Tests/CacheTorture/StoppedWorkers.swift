// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeCaching
import TintypeTestSupport

/// Stops processes at random moments, some of them while they hold the lock, while another process uses the folder.
struct StoppedWorkers {
    let folder: String
    let seed: UInt64

    func run(_ rounds: Int) async throws -> String {
        var generator = SeededGenerator(seed: self.seed)
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        var (found, refused, kept) = (0, 0, 0)
        for round in 0..<rounds {
            // Every other round one is sure to have the lock.
            let isKept = round % 2 == 1
            _ = try await self.warm()
            let worker = try SpawnedProcess(program, ["worker", self.folder, "\(generator.next() >> 2)"])
            usleep(UInt32(5_000 + generator.next() % 40_000))
            worker.stop()
            let holder = isKept ? try Holder.start(self.folder) : nil
            let cache = self.cache()
            found += try await Bodies.checkAll(cache)
            for number in 0..<20 {
                do {
                    let body = Bodies.make(number, version: generator.next())
                    try await cache.store(body, metadata: EntryMetadata(), for: Bodies.keys[number])
                } catch let error as CacheError where error.code == .lockTimedOut || error.code == .diskFull {
                    refused += 1
                }
            }
            if await cache.statistics().lockTimeouts > 0 { kept += 1 }
            await cache.shutdown()
            worker.send(SIGKILL)
            worker.wait()
            holder?.finish()
        }
        let statistics = try await self.warm()
        guard statistics.damagedEntries == 0 else { throw Failure("\(statistics.damagedEntries) entries were damaged") }
        return
            "stopped \(rounds) processes, \(kept) of them with the lock: \(found) entries read whole, \(refused) stores refused"
    }

    /// Opens the folder when no process holds the lock, as the next process would.
    private func warm() async throws -> DiskStatistics {
        let cache = Bodies.cache(in: self.folder)
        try await cache.store(Bodies.make(0, version: 1), metadata: EntryMetadata(), for: Bodies.keys[0])
        _ = try await Bodies.checkAll(cache)
        let statistics = await cache.statistics()
        await cache.shutdown()
        return statistics
    }

    private func cache() -> DiskCache {
        DiskCache(
            DiskCache.Configuration(
                directory: URL(filePath: self.folder),
                sizeLimit: Bodies.sizeLimit,
                lockTimeout: .milliseconds(20)
            )
        )
    }
}

/// A process that this one has started.
struct SpawnedProcess {
    let number: pid_t

    init(_ program: String, _ arguments: [String]) throws {
        let texts: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for text in texts { free(text) } }
        var process = pid_t()
        let code = posix_spawn(&process, program, nil, nil, texts, environ)
        guard code == 0 else { throw Failure("a process could not be started: errno \(code)") }
        self.number = process
    }

    func send(_ signal: CInt) { kill(self.number, signal) }

    /// Stops it, and returns when all of it stands still.
    func stop() {
        self.send(SIGSTOP)
        var status: CInt = 0
        while waitpid(self.number, &status, CInt(WUNTRACED)) < 0, errno == EINTR {}
    }

    /// Waits for its end, and returns how it came.
    @discardableResult
    func wait() -> CInt {
        var status: CInt = 0
        while waitpid(self.number, &status, 0) < 0, errno == EINTR {}
        return status
    }
}
