// SPDX-License-Identifier: Apache-2.0

/// The two parts of a request's path: a signature and the text that it signs.
struct RequestPath {
    /// The first segment, which is not empty.
    let signature: ArraySlice<UInt8>
    /// The rest of the path, with one slash at the start and without the changes of proxies.
    let signed: [UInt8]

    /// Splits the target of a request.
    ///
    /// `prefix` is the start of every path, without slashes at its ends.
    init(_ target: [UInt8], prefix: [UInt8]) throws(AddressError) {
        var rest = target.prefix { $0 != UInt8(ascii: "?") }
        guard rest.popFirst() == UInt8(ascii: "/") else { throw .invalidURL("The path does not start with a slash.") }
        if !prefix.isEmpty {
            guard rest.starts(with: prefix), rest.dropFirst(prefix.count).first == UInt8(ascii: "/") else {
                throw .invalidURL("The path does not start with the prefix of this server.")
            }
            rest = rest.dropFirst(prefix.count + 1)
        }
        // A client may append the path to an address of the server that ends with a slash.
        if rest.first == UInt8(ascii: "/") { rest.removeFirst() }
        let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        self.signature = rest[..<end]
        let behind = rest[end...].dropFirst()
        guard !self.signature.isEmpty, !behind.isEmpty else {
            throw .invalidURL("The path needs a signature, a slash and a source. Without signatures, use \"unsafe\".")
        }
        self.signed = Self.repair(behind)
    }

    private static let marker = Array("plain/".utf8)

    /// Undoes the changes of proxies to a path, and puts one slash in front.
    private static func repair(_ path: ArraySlice<UInt8>) -> [UInt8] {
        var result = [UInt8(ascii: "/")]
        result.reserveCapacity(path.count + 3)
        let sourceStart = self.startOfPlainSource(path)
        let options = path[..<sourceStart]
        // Some proxies encode colons.
        var index = options.first == UInt8(ascii: "/") ? options.startIndex + 1 : options.startIndex
        while index < options.endIndex {
            if options[index] == UInt8(ascii: "%"), options[index...].starts(with: "%3A".utf8) {
                result.append(UInt8(ascii: ":"))
                index += 3
            } else {
                result.append(options[index])
                index += 1
            }
        }
        var source = path[sourceStart...]
        if let colon = self.colonBeforeSingleSlash(source) {
            // Some proxies merge slashes. A local source has three of them.
            let isLocal = source[..<colon].elementsEqual("local".utf8)
            result += source[...colon]
            result += (isLocal ? "//" : "/").utf8
            source = source[(colon + 1)...]
        }
        result += source
        return result
    }

    /// Returns the start of the source after the first `plain/`, or the end of the path if there is no such segment.
    private static func startOfPlainSource(_ path: ArraySlice<UInt8>) -> Int {
        if path.starts(with: self.marker) { return path.startIndex + self.marker.count }
        var index = path.startIndex
        while let slash = path[index...].firstIndex(of: UInt8(ascii: "/")) {
            index = slash + 1
            if path[index...].starts(with: self.marker) { return index + self.marker.count }
        }
        return path.endIndex
    }

    /// Returns the last colon that a single slash follows, as imgproxy finds it.
    private static func colonBeforeSingleSlash(_ source: ArraySlice<UInt8>) -> Int? {
        source.indices.dropFirst().dropLast(2).last { index in
            source[index] == UInt8(ascii: ":") && source[index + 1] == UInt8(ascii: "/")
                && source[index + 2] != UInt8(ascii: "/")
        }
    }
}
