// SPDX-License-Identifier: Apache-2.0

/// The URL of a source in one normal form, so that the server fetches the URL that it has checked.
struct SourceURL: Hashable {
    let scheme: SourceScheme
    /// The name of the host in lower case, or of the bucket.
    let host: [UInt8]
    /// The port: the one of the scheme if the text names no port.
    ///
    /// `nil` if the scheme has no ports.
    let port: Int?
    /// The path and the query.
    ///
    /// Empty or with a slash at the start.
    let path: [UInt8]

    /// Reads a URL.
    ///
    /// Refuses URLs that two programs could understand differently: with a user name, with a backslash or an escape in
    /// the host, or with dot segments.
    init(_ text: [UInt8]) throws(AddressError) {
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalidSource("The source URL has a control character.")
        }
        let schemeEnd = text.prefix(16).firstIndex(of: UInt8(ascii: ":")) ?? 0
        guard text[schemeEnd...].starts(with: "://".utf8) else {
            throw .invalidSource("The source URL does not start with a scheme, such as https://.")
        }
        let name = String(decoding: text[..<schemeEnd], as: UTF8.self).lowercased()
        guard let scheme = SourceScheme(rawValue: name) else {
            throw .invalidSource("Sources of the scheme \(Quotation.of(name)) are not supported.")
        }
        self.scheme = scheme
        let rest = text[(schemeEnd + 3)...]
        if scheme.isWeb {
            let authorityEnd = rest.firstIndex(where: Self.endsAuthority) ?? rest.endIndex
            (self.host, self.port) = try Self.authority(rest[..<authorityEnd], of: scheme)
            // A fragment is for the client only.
            let path = PercentText.encodeInvalid(rest[authorityEnd...].prefix { $0 != UInt8(ascii: "#") })
            self.path = path.first == UInt8(ascii: "/") ? path : [UInt8(ascii: "/")] + path
        } else {
            guard String(validating: rest, as: UTF8.self) != nil else {
                throw .invalidSource("The source URL is not UTF-8.")
            }
            let hostEnd = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            self.host = Array(rest[..<hostEnd])
            self.port = nil
            self.path = Array(rest[hostEnd...])
        }
        guard !Self.hasDotSegment(self.path, isEncoded: scheme.isWeb) else {
            throw .invalidSource("The source URL has a segment \".\" or \"..\". Write the path without it.")
        }
    }

    /// The URL as text.
    var text: String {
        var text = Array("\(self.scheme.rawValue)://".utf8)
        text += self.host
        if let port = self.port, port != self.scheme.port { text += ":\(port)".utf8 }
        text += self.path
        return String(decoding: text, as: UTF8.self)
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    /// Reads a host and a port.
    private static func authority(
        _ text: ArraySlice<UInt8>,
        of scheme: SourceScheme
    ) throws(AddressError) -> (host: [UInt8], port: Int?) {
        guard !text.contains(UInt8(ascii: "@")) else {
            throw .invalidSource("The source URL has a user name. Remove everything before the @.")
        }
        var host = text
        var port = scheme.port
        let bracket = text.lastIndex(of: UInt8(ascii: "]")) ?? text.startIndex
        if let colon = text[bracket...].firstIndex(of: UInt8(ascii: ":")) {
            host = text[..<colon]
            let digits = text[colon...].dropFirst()
            guard digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
                let number = DecimalText.integer(digits, in: 1...65_535)
            else {
                throw .invalidSource("The port of the source URL is not a number from 1 to 65535.")
            }
            port = number
        }
        let isAddress = host.first == UInt8(ascii: "[") && host.last == UInt8(ascii: "]") && host.count > 2
        let isValid =
            isAddress
            ? host.dropFirst().dropLast().allSatisfy(Self.isAddressByte)
            : !host.isEmpty && host.allSatisfy(Self.isHostByte) && String(validating: host, as: UTF8.self) != nil
        guard isValid else { throw .invalidSource("The source URL has no valid host.") }
        return (host.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | 0x20 : $0 }, port)
    }

    private static func isAddressByte(_ byte: UInt8) -> Bool {
        Hexadecimal.value(of: byte) != nil || byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), 0x80...:
            true
        default: false
        }
    }

    /// Whether the path leads back to a folder above.
    ///
    /// An escaped slash or backslash counts as a slash, because some servers take it for one.
    private static func hasDotSegment(_ path: [UInt8], isEncoded: Bool) -> Bool {
        let path = isEncoded ? path.prefix { $0 != UInt8(ascii: "?") } : path[...]
        let decoded = isEncoded && path.contains(UInt8(ascii: "%")) ? PercentText.decode(path)?[...] ?? path : path
        return decoded.hasDotSegment
    }
}

extension SourceScheme {
    /// The port of a URL that names none.
    ///
    /// `nil` if the scheme has no ports.
    var port: Int? {
        switch self {
        case .http: 80
        case .https: 443
        case .local, .s3, .upload: nil
        }
    }
}
