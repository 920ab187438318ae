// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The folder with the first bytes of bodies; it blocks.
struct PartialBodyFolder {
    private struct File {
        let name: String
        let size: Int
        let modified: Double
    }

    private let path: String
    private let maximumBytes: Int
    private let maximumAge: Duration

    init(_ configuration: DownloadActor.PartialBodies) {
        self.path = configuration.directory
        self.maximumBytes = configuration.maximumBytes
        self.maximumAge = configuration.maximumAge
    }

    /// Returns what a file holds, or `nil` if another user may have written the file: its checksum has no key.
    func read(_ name: String) -> Data? {
        let descriptor = open(self.path(of: name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(),
            status.st_mode & (S_IWGRP | S_IWOTH) == 0, status.st_size <= self.maximumBytes
        else { return nil }
        return Self.read(descriptor, count: Int(status.st_size))
    }

    /// Removes a file, unless it is another program's that has the name of one of ours.
    func remove(_ name: String) {
        if self.isOurs(name) { unlink(self.path(of: name)) }
    }

    /// Writes a file in one step, makes room for it, and returns the names of all files.
    ///
    /// A folder that cannot be written keeps nothing; the next transfer then starts from the beginning.
    func write(_ content: Data, to name: String) -> Set<String> {
        let partName = ".\(name).\(getpid())"
        guard content.count <= self.maximumBytes, self.isFree(name), self.isFree(partName) else { return self.clean() }
        // Others must not read what may be private.
        mkdir(self.path, 0o700)
        let temporary = self.path(of: partName)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return self.clean() }
        let isWritten = Self.write(content, to: descriptor)
        close(descriptor)
        if !isWritten || rename(temporary, self.path(of: name)) != 0 { unlink(temporary) }
        return self.clean()
    }

    /// Removes what is too old, what is too much, and what crashes left; returns the names of the others.
    func clean() -> Set<String> {
        let now = Date().timeIntervalSince1970
        let files = self.files().sorted { $0.modified > $1.modified }
        var names: Set<String> = []
        var total = 0
        for file in files {
            total += file.size
            let isTemporary = file.name.hasPrefix(".")
            // One that is being written by another process is younger.
            let maximumAge = isTemporary ? 600 : self.maximumAge / .seconds(1)
            if total > self.maximumBytes || now - file.modified > maximumAge {
                self.remove(file.name)
                total -= file.size
            } else if !isTemporary {
                names.insert(file.name)
            }
        }
        return names
    }

    private func files() -> [File] {
        guard let entries = try? FileManager.default.contentsOfDirectory(atPath: self.path) else { return [] }
        return entries.compactMap { name in
            guard Self.isName(name) || Self.isTemporaryName(name) else { return nil }
            var status = stat()
            guard lstat(self.path(of: name), &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
            let modified = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
            return File(name: name, size: Int(status.st_size), modified: modified)
        }
    }

    /// Whether `name` is a key's.
    private static func isName(_ name: some StringProtocol) -> Bool {
        let digits = "0123456789abcdef".utf8
        return name.utf8.count == 2 * PartialBodyKey.byteCount && name.utf8.allSatisfy(digits.contains)
    }

    /// Whether `name` is that of a file that a process writes: a dot, a key's name, a dot and the process' number.
    private static func isTemporaryName(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 3 && parts[0].isEmpty && Self.isName(parts[1])
            && Int32(parts[2]).map { $0 > 0 && String($0) == parts[2] } ?? false
    }

    /// Whether a file begins as ours do; one that a crash left has only as much as was written.
    private func isOurs(_ name: String) -> Bool {
        let descriptor = open(self.path(of: name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var start = [UInt8](repeating: 0, count: PartialBodyFile.family.count)
        let count = Glibc.read(descriptor, &start, start.count)
        guard count >= 0, count == start.count || name.hasPrefix(".") else { return false }
        return PartialBodyFile.family.starts(with: start[..<count])
    }

    /// Whether a file may be written under a name.
    private func isFree(_ name: String) -> Bool {
        var status = stat()
        return lstat(self.path(of: name), &status) != 0 || self.isOurs(name)
    }

    private static func read(_ descriptor: CInt, count: Int) -> Data? {
        var content = Data(count: count)
        let isRead = content.withUnsafeMutableBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Glibc.read(
                    descriptor,
                    UnsafeMutableRawBufferPointer(rebasing: rest).baseAddress,
                    rest.count
                )
                guard count > 0 || count < 0 && errno == EINTR else { return false }
                rest = rest.dropFirst(max(0, count))
            }
            return true
        }
        return isRead ? content : nil
    }

    private static func write(_ content: Data, to descriptor: CInt) -> Bool {
        content.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = UnsafeRawBufferPointer(rebasing: rest).withMemoryRebound(to: UInt8.self) {
                    Glibc.write(descriptor, $0.baseAddress, $0.count)
                }
                guard count > 0 || errno == EINTR else { return false }
                rest = rest.dropFirst(max(0, count))
            }
            return true
        }
    }

    private func path(of name: String) -> String {
        "\(self.path)/\(name)"
    }
}
