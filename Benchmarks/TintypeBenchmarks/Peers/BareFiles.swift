// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The cost of the system calls alone: a lower bound, not a rival.
enum BareFiles {
    /// Reads each file into a new buffer, as a cache does for its user.
    static func reads(_ session: Session) throws -> Contestant {
        let paths = try self.makeFiles("bare-reads", session)
        return Contestant(note: "open, read into a fresh buffer, close: no key, no checksum") { count in
            try await Measurement.of(operations: count) {
                for number in 0..<count {
                    let descriptor = open(paths[number % paths.count], O_RDONLY | O_CLOEXEC)
                    let block = malloc(DiskTier.byteCount)
                    let size = read(descriptor, block, DiskTier.byteCount)
                    close(descriptor)
                    free(block)
                    try Check.equal("the number of bytes", size, DiskTier.byteCount)
                }
            }
        }
    }

    /// Writes each file to a new one, and moves it over the old one.
    static func writes(_ session: Session) throws -> Contestant {
        let paths = try self.makeFiles("bare-writes", session)
        let temporary = session.folders.temporary.appendingPathComponent("bare-writes/temporary").path
        mkdir(temporary, 0o700)
        let body = [UInt8](repeating: 7, count: DiskTier.byteCount)
        return Contestant(note: "open, write, close, rename: no key, no checksum, no limit") { count in
            try await Measurement.of(operations: count) {
                for number in 0..<count {
                    let source = temporary + "/\(number)"
                    let descriptor = open(source, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
                    let size = write(descriptor, body, body.count)
                    close(descriptor)
                    let result = rename(source, paths[number % paths.count])
                    try Check.equal("the result", size + Int(result), DiskTier.byteCount)
                }
            }
        }
    }

    /// Asks for a file that is not there.
    static func missingChecks(_ session: Session) throws -> Contestant {
        let paths = try self.makeFiles("bare-checks", session)
        let missing = paths[0] + "-none"
        return Contestant(note: "access of a path that is not there") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count { try Check.equal("the result", access(missing, F_OK), -1) }
            }
        }
    }

    /// Files as deep in folders as a cache's entries.
    private static func makeFiles(_ name: String, _ session: Session) throws -> [String] {
        let root = session.folders.temporary.appendingPathComponent(name)
        return try (0..<DiskTier.keyCount).map { number in
            let folder = root.appendingPathComponent("entries/\(String(format: "%02x", number & 255))")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appendingPathComponent(String(format: "%022d", number))
            try Data(repeating: 7, count: DiskTier.byteCount).write(to: file)
            return file.path
        }
    }
}
