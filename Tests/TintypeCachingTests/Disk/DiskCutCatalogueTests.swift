// SPDX-License-Identifier: Apache-2.0

import CTintypeSignals
import FoundationEssentials
import Glibc
import Testing
import TintypeTestTraits

@testable import TintypeCaching

/// Checks that cutting or filling the disk under a mapped catalogue costs its contents, but never ends the process.
@Suite(.waiting, .timeLimit(.minutes(30))) struct DiskCutCatalogueTests {
    enum Cut: String, CaseIterable, Codable, Sendable {
        case toNothing, toAWord, toTheHeader, toAPage, toTheHalf, toNothingAndBack, toAPageAndBack

        /// Cuts the file at `path` in place.
        func perform(at path: String) throws {
            let size = ScratchFolder.byteCount(of: path)
            let lengths =
                switch self {
                case .toNothing: [0]
                case .toAWord: [8]
                case .toTheHeader: [CatalogueLayout.headerByteCount]
                case .toAPage: [4_096]
                case .toTheHalf: [size / 2]
                case .toNothingAndBack: [0, size]
                case .toAPageAndBack: [4_096, size]
                }
            for length in lengths { try #require(truncate(path, length) == 0) }
        }
    }

    @Test(arguments: Cut.allCases)
    func `catalogue that is cut in place is made anew`(cut: Cut) async {
        await #expect(processExitsWith: .success) { [cut] in
            let scratch = try ScratchFolder()
            let keys = (0..<400).map { CacheKey("\($0)") }
            let caches = [0, 1].map { _ in DiskCache(.init(directory: scratch.url)) }
            for key in keys { try await caches[0].store(makeData(100), metadata: .sample, for: key) }
            for cache in caches {
                await cache.waitForHousekeeping()
                #expect(await cache.statistics().entryCount == keys.count)
            }
            try cut.perform(at: scratch.path + "/catalogue")
            // No cache that maps the catalogue may serve wrong data, but entries in the cut part may be misses at
            // first.
            for (number, cache) in caches.enumerated() {
                for key in keys {
                    let data = try await cache.entry(for: key)?.data
                    #expect(data == makeData(100) || data == nil && cut == .toAPageAndBack)
                }
                let own = CacheKey("of \(number)")
                try await cache.store(makeData(200), metadata: .sample, for: own)
                #expect(try await cache.entry(for: own)?.data == makeData(200))
            }
            for cache in caches {
                _ = await cache.prune()
                for key in keys { #expect(try await cache.entry(for: key)?.data == makeData(100)) }
                let statistics = await cache.statistics()
                #expect(statistics.entryCount == keys.count + 2)
                #expect(statistics.byteCount == scratch.byteCount())
                #expect(statistics.overheadByteCount + statistics.byteCount == scratch.wholeByteCount())
                #expect(statistics.damagedEntries == 0)
            }
            try await caches[0].remove(keys[0])
            #expect(try await caches[1].entry(for: keys[0]) == nil)
            for cache in caches { await cache.shutdown() }
        }
    }

    @Test func `cuts while many read and write end no process`() async {
        await #expect(processExitsWith: .success) {
            let scratch = try ScratchFolder()
            let limit = 400_000
            let caches = [0, 1].map { _ in DiskCache(.init(directory: scratch.url, sizeLimit: limit)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<4 {
                    group.addTask {
                        for step in 0..<400 {
                            let key = CacheKey("\((step * 7 + task) % 150)")
                            let cache = caches[task % 2]
                            switch step % 3 {
                            case 0: try await cache.store(makeData(2_000, seed: 3), metadata: .init(), for: key)
                            default:
                                let data = try await cache.entry(for: key)?.data
                                #expect(data == nil || data == makeData(2_000, seed: 3))
                            }
                            if task == 0, step % 40 == 39 {
                                truncate(scratch.path + "/catalogue", [0, 1_024, 4_096][step / 40 % 3])
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            for cache in caches { _ = await cache.prune() }
            for cache in caches {
                let statistics = await cache.statistics()
                #expect(statistics.byteCount == scratch.byteCount())
                #expect(statistics.entryCount == scratch.entryFiles().count)
                await cache.shutdown()
            }
            #expect(scratch.wholeByteCount() <= limit + limit / 100)
        }
    }

    @Test(.enabled(if: TemporaryFileSystem.isAvailable, "mounting a small file system needs root"))
    func `full disk under a mapped catalogue ends no process`() async {
        await #expect(processExitsWith: .success) {
            let disk = try TemporaryFileSystem(byteCount: 2 << 20)
            let cache = DiskCache(.init(directory: disk.url))
            let keys = (0..<200).map { CacheKey("\($0)") }
            for key in keys { try await cache.store(makeData(10), metadata: .init(), for: key) }
            await cache.waitForHousekeeping()
            // Imitate a write to a block that is shared with a copy: the disk has no room for the promised block.
            let catalogue = open(disk.path + "/catalogue", O_RDWR | O_CLOEXEC)
            try #require(punchHole(catalogue, 1 << 20) == 0)
            close(catalogue)
            let filler = open(disk.path + "/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            let block = [UInt8](repeating: 1, count: 4_096)
            while write(filler, block, block.count) > 0 {}
            for key in keys { #expect(try await cache.entry(for: key)?.data == makeData(10)) }
            for key in keys {
                do {
                    try await cache.store(makeData(20), metadata: .init(), for: key)
                } catch {
                    #expect((error as? CacheError)?.code == .diskFull)
                }
            }
            close(filler)
            unlink(disk.path + "/filler")
            try await cache.store(makeData(30), metadata: .init(), for: keys[0])
            #expect(try await cache.entry(for: keys[0])?.data == makeData(30))
            await cache.shutdown()
        }
    }

    // MARK: The host's own signals

    @Test func `fault that is not of a catalogue still ends the process`() async {
        await #expect(processExitsWith: .signal(SIGBUS)) {
            signal(SIGBUS, SIG_DFL)
            let scratch = try ScratchFolder()
            let folder = try openFolder(scratch.path)
            try #require(folder.region.isShared)
            fault(in: scratch)
        }
    }

    @Test func `signal that is sent still ends the process`() async {
        await #expect(processExitsWith: .signal(SIGBUS)) {
            signal(SIGBUS, SIG_DFL)
            let scratch = try ScratchFolder()
            _ = try openFolder(scratch.path)
            raise(SIGBUS)
        }
    }

    @Test(arguments: [true, false])
    func `handler of the host gets its own faults`(isFirst: Bool) async {
        await #expect(processExitsWith: .exitCode(42)) { [isFirst] in
            let scratch = try ScratchFolder()
            var folder: CacheFolder?
            if !isFirst { folder = try openFolder(scratch.path) }
            installHandler()
            if isFirst { folder = try openFolder(scratch.path) }
            // Install our handler again over the host's handler, which forwards faults that are not its own.
            let other = try openFolder(scratch.path)
            try Cut.toNothing.perform(at: scratch.path + "/catalogue")
            #expect(other.region.flags.isEmpty)
            #expect(folder?.region.isWhole == false)
            fault(in: scratch)
        }
    }

    @Test func `handler of the host that jumps out of a fault gets the next one too`() async {
        await #expect(processExitsWith: .success) {
            signal(SIGBUS, SIG_DFL)
            let scratch = try ScratchFolder()
            let folder = try openFolder(scratch.path)
            mapOwnPage(in: scratch)
            csignals_install(try #require(ownPage))
            // Install our handler again over the host's handler.
            let other = try openFolder(scratch.path)
            for _ in 0..<3 { #expect(csignals_fault() == 1) }
            try Cut.toNothing.perform(at: scratch.path + "/catalogue")
            #expect(other.region.flags.isEmpty)
            #expect(csignals_fault() == 1)
            #expect(folder.region.isWhole == false)
        }
    }

    // MARK: Catalogues of others

    @Test(.enabled(if: geteuid() == 0, "only root can leave files of root"))
    func `catalogue that root has left is replaced`() async {
        await #expect(processExitsWith: .success) {
            let scratch = try ScratchFolder()
            try #require(chown(scratch.path, 65_534, 65_534) == 0 && setegid(65_534) == 0 && seteuid(65_534) == 0)
            let keys = (0..<50).map { CacheKey("\($0)") }
            let cache = DiskCache(.init(directory: scratch.url))
            for key in keys { try await cache.store(makeData(10), metadata: .init(), for: key) }
            await cache.waitForHousekeeping()
            // A process of root creates such a catalogue when the table grows.
            try #require(seteuid(0) == 0 && setegid(0) == 0)
            try openFolder(scratch.path).withCatalogue { catalogue, _ throws(SystemCallError) in try catalogue.grow() }
            chown(scratch.path + "/catalogue", 0, 0)
            chmod(scratch.path + "/catalogue", 0o600)
            try #require(setegid(65_534) == 0 && seteuid(65_534) == 0)
            // Check a running cache and one that opens later.
            for cache in [cache, DiskCache(.init(directory: scratch.url))] {
                for key in keys { #expect(try await cache.entry(for: key)?.data == makeData(10)) }
                try await cache.store(makeData(20), metadata: .init(), for: CacheKey("new"))
                #expect(await cache.statistics().entryCount == keys.count + 1)
                await cache.shutdown()
            }
            #expect(access(scratch.path + "/catalogue", R_OK | W_OK) == 0)
        }
    }

    @Test func `catalogue with a second name is not shared`() async throws {
        let scratch = try ScratchFolder()
        let first = DiskCache(.init(directory: scratch.url.appending(path: "one")))
        try await first.store(makeData(10), metadata: .init(), for: CacheKey("a"))
        await first.shutdown()
        // `cp -al` copies a folder like this.
        try FileManager.default.createDirectory(
            at: scratch.url.appending(path: "two"),
            withIntermediateDirectories: true
        )
        #expect(link(scratch.path + "/one/catalogue", scratch.path + "/two/catalogue") == 0)
        let second = DiskCache(.init(directory: scratch.url.appending(path: "two")))
        try await second.store(makeData(10), metadata: .init(), for: CacheKey("b"))
        #expect(await second.statistics().entryCount == 1)
        let again = DiskCache(.init(directory: scratch.url.appending(path: "one")))
        #expect(await again.statistics().entryCount == 1)
        #expect(try await again.entry(for: CacheKey("a")) != nil)
    }
}

/// Releases the blocks of a file without changing its length.
private func punchHole(_ descriptor: CInt, _ byteCount: Int) -> CInt {
    // Swift does not import `fallocate`. The mode is `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`.
    typealias Allocate = @convention(c) (CInt, CInt, Int, Int) -> CInt
    guard let symbol = dlsym(nil, "fallocate") else { return -1 }
    return unsafeBitCast(symbol, to: Allocate.self)(descriptor, 3, 0, byteCount)
}

nonisolated(unsafe) private var ownPage: UnsafeMutableRawPointer?
nonisolated(unsafe) private var previous = sigaction()

/// Writes to memory of the host that is mapped from an empty file.
private func fault(in scratch: ScratchFolder) {
    mapOwnPage(in: scratch)
    ownPage?.storeBytes(of: 1, as: UInt8.self)
}

private func mapOwnPage(in scratch: ScratchFolder) {
    let descriptor = open(scratch.path + "/own", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    ownPage = mmap(nil, 4_096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
}

/// Installs a handler like that of a host, which ends the process at its own faults and forwards all others.
private func installHandler() {
    var action = sigaction()
    action.__sigaction_handler.sa_sigaction = { number, info, context in
        if let ownPage, info?.pointee._sifields._sigfault.si_addr == ownPage { _exit(42) }
        previous.__sigaction_handler.sa_sigaction?(number, info, context)
    }
    action.sa_flags = SA_SIGINFO
    sigaction(SIGBUS, &action, &previous)
}
