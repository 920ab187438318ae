import FoundationEssentials
import Tintype

/// A picture that was named on the command line: a URL or a path.
struct Input: Sendable {
    /// As it was written.
    let text: String
    /// Where it is; paths become `file:` URLs.
    let url: URL

    init(_ text: String) {
        self.text = text
        if Self.hasScheme(text), let url = URL(string: text) {
            self.url = url
        } else {
            self.url = URL(filePath: text)
        }
    }

    /// An input from the command line.
    init(argument text: String) throws(UsageError) {
        guard !text.isEmpty else { throw UsageError("an input is empty; name a URL or a path") }
        guard text != "-" else {
            throw UsageError("pictures are not read from standard input; name a URL or a path")
        }
        self.init(text)
    }

    /// Whether the text begins with a URL scheme (RFC 3986, section 3.1).
    ///
    /// A path that holds a colon can be written with `./` before it.
    private static func hasScheme(_ text: String) -> Bool {
        guard let colon = text.firstIndex(of: ":"), let first = text.utf8.first else { return false }
        let scheme = text[..<colon]
        let isLetter = { (byte: UInt8) in (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
        let others = "0123456789+-.".utf8
        return scheme.count > 1 && isLetter(first) && scheme.utf8.allSatisfy { isLetter($0) || others.contains($0) }
    }

    /// The last part of the path without its extension, for file names; never empty, never too long.
    var stem: String {
        let name = self.url.scheme?.lowercased() == "data" ? "" : self.url.deletingPathExtension().lastPathComponent
        var safe = name.filter { $0 != "/" && $0 != "\0" }
        // Linux allows 255 bytes; a number and an extension follow.
        while safe.utf8.count > 200 { safe.removeLast() }
        return safe.isEmpty || safe == "." || safe == ".." ? "picture" : safe
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
