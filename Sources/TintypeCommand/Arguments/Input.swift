// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// An image that was named on the command line: a URL or a path.
struct Input: Sendable {
    /// As it was written; what is not UTF-8 is replaced.
    let text: String
    /// The URL; paths become `file:` URLs.
    let url: URL
    /// The same as a path, for what is one.
    let path: Argument

    init(_ argument: Argument) {
        self.text = argument.text
        self.path = argument
        guard let text = argument.exactText else {
            self.url = Self.fileURL(argument.bytes)
            return
        }
        if Self.hasScheme(text), let url = URL(string: text) {
            self.url = url
        } else {
            self.url = URL(filePath: text)
        }
    }

    /// An input from the command line.
    init(argument: Argument) throws(UsageError) {
        guard !argument.bytes.isEmpty else { throw UsageError("an input is empty; name a URL or a path") }
        guard argument.text != "-" else {
            throw UsageError("images are not read from standard input; name a URL or a path")
        }
        self.init(argument)
        if !self.isURL, Self.namesPort(self.text), self.path.withPath({ access($0, F_OK) }) != 0 {
            let name = self.text.abbreviated
            throw UsageError("\(name) has no scheme; write http://\(name), or ./\(name) for a file")
        }
    }

    /// Whether the text begins with a host and a port, such as `localhost:8080/a.jpg`.
    private static func namesPort(_ text: String) -> Bool {
        let start = text.hasPrefix("[") ? text.firstIndex(of: "]") ?? text.startIndex : text.startIndex
        guard let colon = text[start...].firstIndex(of: ":"), colon > text.startIndex else { return false }
        let name = text[..<colon]
        guard !name.contains("/"), !["http", "https", "file", "data"].contains(name.lowercased()) else { return false }
        let rest = text[colon...].dropFirst()
        let port = rest.prefix { $0.isASCII && $0.isNumber }
        return (1...5).contains(port.count) && (port.endIndex == rest.endIndex || "/?#".contains(rest[port.endIndex]))
    }

    /// The URL of a path that is not UTF-8: its bytes, percent-encoded (RFC 8089).
    private static func fileURL(_ path: [UInt8]) -> URL {
        let isAbsolute = path.first == UInt8(ascii: "/")
        let folder = isAbsolute ? "" : FileManager.default.currentDirectoryPath + "/"
        let plain = Set("/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        let encoded = (Array(folder.utf8) + path).map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return plain.contains(byte) ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + digits
        }
        // Only letters, digits and the like are left: there is such a URL.
        return URL(string: "file://" + encoded.joined()) ?? URL(filePath: String(decoding: path, as: UTF8.self))
    }

    /// Whether it was written as a URL.
    var isURL: Bool { self.path.exactText.map { Self.hasScheme($0) } ?? false }

    /// Whether it is loaded over the network.
    var isOfNetwork: Bool { self.isURL && !["file", "data"].contains(self.url.scheme?.lowercased()) }

    /// Whether the text begins with a URL scheme (RFC 3986, section 3.1).
    ///
    /// A path that holds a colon can be written with `./` before it.
    private static func hasScheme(_ text: String) -> Bool {
        guard let colon = text.firstIndex(of: ":"), let first = text.utf8.first, !self.namesPort(text) else {
            return false
        }
        let scheme = text[..<colon]
        let isLetter = { (byte: UInt8) in (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
        let others = "0123456789+-.".utf8
        return scheme.count > 1 && isLetter(first) && scheme.utf8.allSatisfy { isLetter($0) || others.contains($0) }
    }

    /// The last part of the path without its extension, for file names; never empty, never too long.
    ///
    /// The author of the URL chose it: it gets no character that would make a listing of files say something else.
    var stem: String {
        let isData = self.url.scheme?.lowercased() == "data"
        var safe = String.UnicodeScalarView()
        for scalar in (isData ? "" : self.lastName).unicodeScalars where scalar != "/" && !scalar.isDeceptive {
            safe.append(scalar)
        }
        var name = String(safe)
        // Linux allows 255 bytes; a number and an extension follow.
        while name.utf8.count > 200 { name.removeLast() }
        return name.isEmpty || name == "." || name == ".." ? "image" : name
    }

    private var lastName: String {
        guard self.path.exactText == nil else { return self.url.deletingPathExtension().lastPathComponent }
        let name = self.path.bytes.split(separator: UInt8(ascii: "/")).last ?? []
        let end = name.lastIndex(of: UInt8(ascii: ".")) ?? name.endIndex
        return String(decoding: end == name.startIndex ? name : name[..<end], as: UTF8.self)
    }

    /// A name for each input's file, none twice: the second `photo` becomes `photo-2`.
    static func distinctStems(of inputs: [Input]) -> [String] {
        var used: Set<String> = []
        return inputs.map { input in
            let stem = input.stem
            var name = stem
            var number = 1
            while !used.insert(name).inserted {
                number += 1
                name = "\(stem)-\(number)"
            }
            return name
        }
    }
}
