// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeCaching
import TintypeTestSupport

/// Rounds of two processes that use one folder and are killed at random moments.
struct KillRounds {
    let folder: String
    let seed: UInt64

    func run(_ rounds: Int) async throws -> String {
        var generator = SeededGenerator(seed: self.seed)
        var (found, leftovers) = (0, 0)
        for round in 0..<rounds {
            let workers = try (0..<2).map { _ in try self.start(seed: generator.next() >> 2) }
            for worker in workers.shuffled(using: &generator) {
                usleep(UInt32(1_000 + generator.next() % 40_000))
                kill(worker, SIGKILL)
            }
            for worker in workers {
                var status: CInt = 0
                while waitpid(worker, &status, 0) < 0, errno == EINTR {}
                guard status & 0x7F == SIGKILL else { throw Failure("round \(round): a worker ended by itself") }
            }
            leftovers += self.files("temporary").count
            do {
                found += try await self.check()
            } catch {
                throw Failure("round \(round): \(error)")
            }
        }
        return "killed \(2 * rounds) processes: \(found) entries read whole, \(leftovers) leftovers cleaned, none wrong"
    }

    private func start(seed: UInt64) throws -> pid_t {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let texts: [String] = [program, "worker", self.folder, "\(seed)"]
        let arguments: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        let code = posix_spawn(&process, program, nil, nil, arguments, environ)
        guard code == 0 else { throw Failure("a worker could not be started: errno \(code)") }
        return process
    }

    /// Opens the folder as the next process does.
    private func check() async throws -> Int {
        let cache = Bodies.cache(in: self.folder)
        let found = try await Bodies.checkAll(cache)
        // Waits for the cleaning after opening.
        _ = await cache.removeExpired()
        let statistics = await cache.statistics()
        await cache.shutdown()
        guard statistics.damagedEntries == 0 else { throw Failure("\(statistics.damagedEntries) entries were damaged") }
        let entries = self.files("entries")
        let size = entries.reduce(0) { $0 + self.size(of: $1) }
        guard statistics.entryCount == entries.count, statistics.byteCount == size else {
            throw Failure(
                "\(entries.count) files of \(size) bytes are counted as \(statistics.entryCount) of \(statistics.byteCount)"
            )
        }
        let rest = self.files("").filter { !$0.contains("/entries/") }.map { $0.dropFirst(self.folder.count + 1) }
        guard Set(rest).isSubset(of: ["catalogue", "lock"]) else { throw Failure("left over: \(rest)") }
        let total = self.files("").reduce(0) { $0 + self.size(of: $1) }
        guard total <= Bodies.sizeLimit + Bodies.sizeLimit / 100 else {
            throw Failure("\(total) bytes are over the limit")
        }
        return found
    }

    private func files(_ subfolder: String) -> [String] {
        let root = subfolder.isEmpty ? self.folder : self.folder + "/" + subfolder
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: root)) ?? []
        return names.map { root + "/" + $0 }.filter { path in
            var status = stat()
            return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        }
    }

    private func size(of path: String) -> Int {
        var status = stat()
        return lstat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}
