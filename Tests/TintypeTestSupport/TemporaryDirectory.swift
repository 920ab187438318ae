// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Glibc

/// A new empty folder, which is removed with all its content when the object goes away.
public final class TemporaryDirectory: Sendable {
    /// The absolute path, without a slash at its end.
    public let path: String

    /// Creates the folder in `$TMPDIR` or `/tmp`.
    public init(prefix: String = "tintype-test") throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/\(prefix)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw TestSupportError("No folder could be made in \(parent): errno \(errno). Check TMPDIR.")
        }
        self.path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: self.path)
    }

    /// Returns the path of an item in the folder.
    public func path(of name: String) -> String { "\(self.path)/\(name)" }

    /// Returns the `file:` URL of an item in the folder.
    public func url(of name: String) -> URL { URL(filePath: self.path(of: name)) }

    /// Writes a file, creates the folders of its path, and returns the path.
    @discardableResult
    public func write(_ content: some Collection<UInt8>, to name: String) throws -> String {
        let path = self.path(of: name)
        if let slash = name.lastIndex(of: "/") {
            let folder = self.path(of: String(name[..<slash]))
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        try Data(content).write(to: URL(filePath: path))
        return path
    }
}
