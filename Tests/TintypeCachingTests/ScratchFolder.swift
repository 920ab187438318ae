// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

@testable import TintypeCaching

/// A folder for one test, which is removed with its last reference.
final class ScratchFolder: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/tintype-cache-XXXXXX".utf8CString)
        let isMade = template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) } != nil }
        guard isMade else { throw ScratchFolderError() }
        self.path = template.withUnsafeBufferPointer { buffer in buffer.baseAddress.map { String(cString: $0) } ?? "" }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: self.path)
    }

    var url: URL { URL(filePath: self.path, directoryHint: .isDirectory) }

    /// Returns the sorted paths of all regular files in the folder, except the cache's own records.
    func files() -> [String] {
        Self.files(under: self.path).filter { !$0.hasSuffix("/catalogue") && !$0.hasSuffix("/lock") }
    }

    /// Returns the paths of the entry files.
    ///
    /// It lists no other folder, because a listing fails if the cache deletes files meanwhile.
    func entryFiles() -> [String] { Self.files(under: self.path + "/entries") }

    /// Returns the total size of ``files()``.
    func byteCount() -> Int {
        self.files().reduce(0) { $0 + Self.byteCount(of: $1) }
    }

    /// Returns the total size of all files.
    func wholeByteCount() -> Int {
        Self.files(under: self.path).reduce(0) { $0 + Self.byteCount(of: $1) }
    }

    /// Returns the path at which a cache in the folder stores the entry of `key`.
    func path(of key: CacheKey) -> String {
        "\(self.path)/entries/\(key.digest.prefix(2))/\(key.digest.dropFirst(2).prefix(22))"
    }

    static func files(under path: String) -> [String] {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
        return names.map { path + "/" + $0 }.filter { name in
            var status = stat()
            return lstat(name, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        }.sorted()
    }

    static func byteCount(of path: String) -> Int {
        var status = stat()
        return lstat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}

struct ScratchFolderError: Error {}

/// Opens the cache folder at `path` as a cache does.
func openFolder(_ path: String, patience: Patience = Patience(limit: .seconds(5))) throws -> CacheFolder {
    // The maintenance of a cache that runs may have the lock.
    let opening = try patience.wait { () throws(SystemCallError) -> CacheFolder.Opening? in
        let opening = try CacheFolder.open(path, isMaking: true, patience: patience)
        if case .busy = opening { return nil }
        return opening
    }
    guard case .opened(let folder) = opening else { throw ScratchFolderError() }
    return folder
}
