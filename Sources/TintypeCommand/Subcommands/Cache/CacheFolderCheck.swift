// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Tintype

/// The folder of the disk cache, as far as the command looks at it itself.
enum CacheFolderCheck {
    /// Returns the reason why an existing folder cannot be used; `nil` if it can, or does not exist yet.
    ///
    /// A cache treats unreadable entries as misses: it would look empty.
    static func problem(_ configuration: DiskCache.Configuration) -> String? {
        let path = configuration.directory.path
        var status = stat()
        guard stat(path, &status) == 0 else {
            return errno == ENOENT ? nil : self.message(path, errno)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return "\(path) is a file; a cache is a folder." }
        // As the user that the process acts for, like every other call.
        guard faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) != 0 else { return nil }
        return self.message(path, errno)
    }

    /// Returns an error if there is no cache in the folder, whose name may be mistyped; otherwise `nil`.
    static func absence(_ configuration: DiskCache.Configuration) -> String? {
        let path = configuration.directory.path
        var status = stat()
        guard stat(path, &status) == 0 else { return "There is no folder \(path) yet, and so nothing is cached there." }
        let isCache = ["entries", "catalogue"].contains { stat("\(path)/\($0)", &status) == 0 }
        return isCache ? nil : "The folder \(path) has no cache in it."
    }

    private static func message(_ path: String, _ code: CInt) -> String {
        "The cache folder \(path) cannot be used (\(SystemError(code: code))); "
            + "change its permissions, or choose another by --cache-dir or XDG_CACHE_HOME."
    }
}

extension DiskCache.Configuration {
    /// The same with a size limit that is not under what the folder holds.
    ///
    /// A server may keep a larger cache in the same folder than the command would: the command must not shrink it.
    func sparing() async -> DiskCache.Configuration {
        guard CacheFolderCheck.absence(self) == nil else { return self }
        var copy = self
        copy.sizeLimit = .max
        let cache = DiskCache(copy)
        let statistics = await cache.statistics()
        await cache.shutdown()
        // The hidden part behind another process's lock may have any size.
        guard statistics.lockTimeouts == 0 else { return copy }
        copy.sizeLimit = max(self.sizeLimit, statistics.byteCount + statistics.overheadByteCount)
        return copy
    }
}

extension LoaderActor.Configuration {
    /// The same with a disk tier that is not made smaller.
    func sparing() async -> LoaderActor.Configuration {
        var copy = self
        copy.disk = await self.disk?.sparing()
        return copy
    }
}
