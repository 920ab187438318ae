// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeCaching
import TintypeTestSupport

/// Checks that files stay readable on a full disk and on a read-only one, and that the process survives.
struct BadDisks {
    let folder: TemporaryDirectory

    func run() async throws -> String {
        guard SmallDisk.isPossible else { return "full and read-only disks: skipped, this user may not mount" }
        let disk = try SmallDisk(byteCount: 1 << 20, at: self.folder.path(of: "disk"))
        defer { disk.unmount() }
        let cache = Bodies.cache(in: disk.path + "/cache")
        var (stored, refused) = (0, 0)
        for number in 0..<200 {
            do {
                try await cache.store(
                    Bodies.make(number, version: 1),
                    metadata: EntryMetadata(),
                    for: Bodies.keys[number]
                )
                stored += 1
            } catch let error as CacheError where error.code == .diskFull {
                refused += 1
            }
        }
        guard stored > 10, refused > 10 else { throw Failure("the disk was not full: \(stored) stored") }
        let found = try await Bodies.checkAll(cache)
        guard found >= stored - 1 else { throw Failure("\(found) of \(stored) entries were read on a full disk") }
        await cache.shutdown()
        // A folder that is first opened when there is no room for a catalogue.
        let late = Bodies.cache(in: disk.path + "/late")
        _ = try await Bodies.checkAll(late)
        late.enqueueStore(Bodies.make(1, version: 2), metadata: EntryMetadata(), for: Bodies.keys[1])
        await late.waitForPendingStores()
        await late.shutdown()

        guard mount("tmpfs", disk.path, "tmpfs", 32 | 1, nil) == 0 else { throw Failure("no remount: errno \(errno)") }
        let reader = Bodies.cache(in: disk.path + "/cache")
        let again = try await Bodies.checkAll(reader)
        guard again == found else { throw Failure("\(again) of \(found) entries were read on a read-only disk") }
        let error = await self.storeError(reader)
        guard error?.code == .cacheNotWritable else {
            throw Failure("a store on a read-only disk says \(String(describing: error))")
        }
        await reader.shutdown()
        return "full disk: \(stored) stored, \(refused) refused, \(found) read; read-only: \(again) read"
    }

    private func storeError(_ cache: DiskCache) async -> CacheError? {
        do {
            try await cache.store(Bodies.make(1, version: 3), metadata: EntryMetadata(), for: Bodies.keys[1])
            return nil
        } catch {
            return error as? CacheError
        }
    }
}
