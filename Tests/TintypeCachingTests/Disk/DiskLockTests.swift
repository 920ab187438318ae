// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Checks caches while another process holds the folder's lock and makes no progress.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskLockTests {
    private let folder: ScratchFolder
    private let key = CacheKey("a")
    private let pauses = Pauses()

    init() throws {
        self.folder = try ScratchFolder()
    }

    private func makeCache(lockTimeout: Duration = .seconds(1)) -> DiskCache {
        let pauses = self.pauses
        var configuration = DiskCache.Configuration(directory: self.folder.url, lockTimeout: lockTimeout)
        configuration.sleep = { pauses.add($0) }
        return DiskCache(configuration)
    }

    /// Starts a process that takes the lock and stops.
    private func stopHolder() throws -> StoppedProcess {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(filePath: tests).deletingLastPathComponent().appending(path: "CacheTorture").path
        return try StoppedProcess(program, ["holder", self.folder.path])
    }

    private func errorCode(_ body: () async throws -> Void) async -> CacheError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    @Test(arguments: [true, false])
    func `loads go on while a stopped process has the lock`(isOpened: Bool) async throws {
        let first = self.makeCache()
        try await first.store(makeData(100), metadata: .sample, for: self.key)
        await first.waitForHousekeeping()
        if !isOpened { await first.shutdown() }
        let holder = try self.stopHolder()
        let cache = isOpened ? first : self.makeCache()
        #expect(try await cache.entry(for: self.key)?.data == makeData(100))
        #expect(try await cache.entry(for: CacheKey("none")) == nil)
        #expect(await cache.contains(self.key))
        let code = await self.errorCode { try await cache.store(makeData(10), metadata: .init(), for: CacheKey("b")) }
        #expect(code == .lockTimedOut)
        #expect(await self.errorCode { try await cache.removeAll() } == .lockTimedOut)
        #expect(await self.errorCode { try await cache.remove(self.key) } == .lockTimedOut)
        _ = await cache.prune()
        _ = await cache.verify()
        // After one timeout, operations only try the lock. The opening and one lane may wait at the same time.
        #expect(self.pauses.total <= .milliseconds(2_200))
        let statistics = await cache.statistics()
        #expect(statistics.lockTimeouts >= 3)
        #expect(statistics.entryCount == 1)
        #expect(statistics.lastStoreError?.message.contains(self.folder.path) == true)
        #expect(try await cache.entry(for: self.key)?.data == makeData(100))
        holder.finish()
        try await cache.store(makeData(10), metadata: .init(), for: CacheKey("b"))
        #expect(await cache.statistics().entryCount == 2)
        await cache.shutdown()
    }

    @Test func `background stores behind a stopped process fail and are counted`() async throws {
        let cache = self.makeCache()
        try await cache.store(makeData(100), metadata: .sample, for: self.key)
        await cache.waitForHousekeeping()
        let holder = try self.stopHolder()
        for number in 0..<100 { cache.enqueueStore(makeData(10), metadata: .init(), for: CacheKey("\(number)")) }
        await cache.waitForPendingStores()
        #expect(self.pauses.total <= .milliseconds(2_200))
        #expect(await cache.statistics().storeErrors == 100)
        #expect(self.folder.entryFiles().count == 1)
        holder.finish()
        await cache.shutdown()
    }

    @Test func `folder that nobody has opened is a miss while the lock is kept`() async throws {
        #expect(FileManager.default.createFile(atPath: self.folder.path + "/lock", contents: nil))
        let holder = try self.stopHolder()
        let cache = self.makeCache()
        #expect(await self.errorCode { _ = try await cache.entry(for: self.key) } == .lockTimedOut)
        #expect(await CacheActor(disk: cache).contains(self.key) == false)
        #expect(try await CacheActor(disk: cache).entry(for: self.key) == nil)
        holder.finish()
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        #expect(try await cache.entry(for: self.key) != nil)
        await cache.shutdown()
    }

    @Test func `cancelled read and shutdown do not wait for the lock`() async throws {
        #expect(FileManager.default.createFile(atPath: self.folder.path + "/lock", contents: nil))
        let holder = try self.stopHolder()
        let cache = self.makeCache(lockTimeout: .seconds(3_600))
        let key = self.key
        let read = Task { try await cache.entry(for: key) }
        await until { self.pauses.total >= .milliseconds(10) }
        read.cancel()
        _ = await read.result
        // The store has its place before it waits, because the housekeeper also waits for the lock.
        let store = Task.immediate { try await cache.store(makeData(10), metadata: .init(), for: key) }
        let before = self.pauses.total
        await until { self.pauses.total >= before + .milliseconds(10) }
        await cache.shutdown()
        #expect(await self.errorCode { try await store.value } == .lockTimedOut)
        holder.finish()
    }

    @Test func `lock that is held for a moment is waited for`() async throws {
        let (one, other) = (try openFolder(self.folder.path), try openFolder(self.folder.path))
        let lock = try FolderLock(in: one.descriptor)
        #expect(lock.tryLock())
        let pauses = Atomic<Int>(0)
        let patience = Patience(
            limit: .seconds(1),
            sleep: { _ in if pauses.add(1, ordering: .relaxed).newValue == 5 { lock.unlock() } }
        )
        let lockFile = try #require(other.lockFile)
        #expect(try patience.wait { () throws(SystemCallError) -> Bool? in lockFile.tryLock() ? true : nil })
        #expect(pauses.load(ordering: .relaxed) == 5)
        #expect(patience.timeouts.load(ordering: .relaxed) == 0)
    }

    @Test func `room is waited for again after a wait in vain`() async throws {
        let giveBack = Locked<(@Sendable () -> Void)?>(nil)
        let limit = 1 << 20
        var configuration = DiskCache.Configuration(directory: self.folder.url, sizeLimit: limit)
        configuration.sleep = { _ in giveBack.withLock { $0.take() }?() }
        let cache = DiskCache(configuration)
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        await cache.waitForHousekeeping()
        let folder = try #require(cache.store.folders.opened)
        let reserve: @Sendable (Int) -> Void = { count in
            try? folder.withCatalogue { catalogue, _ in catalogue.reserve(count) }
        }
        reserve(limit)
        #expect(await self.errorCode { try await cache.store(makeData(10), metadata: .init(), for: self.key) } != nil)
        reserve(-limit)
        try await cache.store(makeData(10), metadata: .init(), for: self.key)
        reserve(limit)
        giveBack.withLock { $0 = { reserve(-limit) } }
        try await cache.store(makeData(20), metadata: .init(), for: self.key)
        #expect(try await cache.entry(for: self.key)?.data == makeData(20))
        await cache.shutdown()
    }

    @Test func `lock and number that a forked child keeps are given back`() async {
        await #expect(processExitsWith: .success) {
            let scratch = try ScratchFolder()
            var folder: CacheFolder? = try openFolder(scratch.path)
            let number = try #require(folder?.owner)
            var child: pid_t = 0
            try folder?.withCatalogue { _, _ in
                child = forkedChild()
            }
            // The child shares the lock, which was held when the child was forked.
            try openFolder(scratch.path).withCatalogue { _, _ in }
            folder = nil
            let again = try openFolder(scratch.path)
            #expect(again.owner == number)
            kill(child, SIGKILL)
            waitpid(child, nil, 0)
            _ = again
        }
    }
}

/// Forks a child that sleeps and runs no other program.
private func forkedChild() -> pid_t {
    // Swift does not import `fork`. The child only calls `pause`.
    typealias Fork = @convention(c) () -> pid_t
    guard let symbol = dlsym(nil, "fork") else { return -1 }
    let process = unsafeBitCast(symbol, to: Fork.self)()
    while process == 0 { Glibc.pause() }
    return process
}

/// A replacement for the sleep of a thread, which adds up durations and does not wait.
private final class Pauses: Sendable {
    private let sum = Locked(Duration.zero)

    var total: Duration { self.sum.withLock { $0 } }

    func add(_ duration: Duration) {
        self.sum.withLock { $0 += duration }
    }
}
