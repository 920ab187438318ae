// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

/// The path in a `local:` URL, below a folder.
struct LocalPath: Sendable, CustomStringConvertible {
    /// The names of the folders and of the file.
    ///
    /// They are bytes, as Linux names files, without slashes and without NUL.
    let components: [[UInt8]]

    /// Reads a URL such as `local:///folder/name.jpg`.
    ///
    /// Decodes the names once, and ignores a query. Returns `nil` if the URL has a host or a fragment, or if a name is
    /// empty, `.` or `..`, or has a slash, a backslash or a control character.
    init?(_ url: URL) {
        let text = url.absoluteString
        let prefix = "local:///"
        guard text.prefix(prefix.count).lowercased() == prefix else { return nil }
        let path = text.utf8.dropFirst(prefix.utf8.count).prefix { $0 != UInt8(ascii: "?") }
        let names = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard !path.contains(UInt8(ascii: "#")) else { return nil }
        self.components = names.map { PercentEncoding.decode($0) }
        guard self.components.allSatisfy(Self.isName) else { return nil }
    }

    /// The path for messages.
    var description: String { String(decoding: Array(self.components.joined(separator: "/".utf8)), as: UTF8.self) }

    private static func isName(_ name: [UInt8]) -> Bool {
        let isSpecial = name.isEmpty || name == Array(".".utf8) || name == Array("..".utf8)
        return !isSpecial && FieldText.isPlain(name) && !name.contains { "/\\".utf8.contains($0) }
    }
}
