// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A word of a command after its name: text or bytes.
///
/// Literals are words of text. Numbers are written in decimal.
public enum RedisArgument: Sendable, Hashable {
    /// Text, sent as UTF-8.
    case text(String)
    /// Bytes, sent as they are.
    case data(Data)
}

extension RedisArgument: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral {
    /// Creates a word from a literal.
    public init(stringLiteral text: String) {
        self = .text(text)
    }

    /// Creates a word from a whole number.
    public init(integerLiteral number: Int) {
        self = .text(String(number))
    }
}

/// A Redis command and its words.
///
/// ```swift
/// let body = Data("hello".utf8)
/// let store = RedisCommand("SET", "greeting", .data(body), "EX", 60, key: "greeting")
/// let load = RedisCommand("GET", "greeting", key: "greeting", isReadOnly: true)
/// ```
public struct RedisCommand: Sendable, Hashable {
    /// The name, such as `GET`.
    public let name: String
    /// The words after the name.
    public let arguments: [RedisArgument]
    /// The key, or one of several keys with the same hash tag, which selects the node of a cluster.
    ///
    /// A command without a key runs on any node.
    public let key: String?
    /// Whether the command changes nothing, so the client may send it again after it has lost a connection.
    public let isReadOnly: Bool

    /// Creates a command.
    ///
    /// In this example, the server that acquires the lock loads the images. The lock expires after five minutes.
    ///
    /// ```swift
    /// let host = ProcessInfo.processInfo.hostName
    /// let lock = RedisCommand("SET", "warm-up", .text(host), "NX", "EX", 300, key: "warm-up")
    /// guard try await client.run(lock) == .status("OK") else { return }  // Another server has the lock.
    /// for request in requests { _ = try await loader.image(for: request) }
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name, such as `GET`.
    ///   - arguments: The words after the name, including the key.
    ///   - key: The key that selects the node of a cluster. `nil`, the default, selects any node.
    ///   - isReadOnly: Whether the command changes nothing. False by default.
    public init(_ name: String, _ arguments: RedisArgument..., key: String? = nil, isReadOnly: Bool = false) {
        self.init(name, arguments: arguments, key: key, isReadOnly: isReadOnly)
    }

    /// Creates a command from a list of words.
    ///
    /// See ``init(_:_:key:isReadOnly:)`` for the parameters.
    ///
    /// In this example, the words are a hash and its fields.
    ///
    /// ```swift
    /// let fields = requests.map { RedisArgument.text("\($0.url)") }
    /// let load = RedisCommand("HMGET", arguments: ["views"] + fields, key: "views", isReadOnly: true)
    /// let counts = try await client.run(load).elements ?? []
    /// for (request, count) in zip(requests, counts) { print(request.url, count.number ?? 0) }
    /// ```
    public init(_ name: String, arguments: [RedisArgument], key: String? = nil, isReadOnly: Bool = false) {
        self.name = name
        self.arguments = arguments
        self.key = key
        self.isReadOnly = isReadOnly
    }

    /// The commands that change the connection for all tasks that share it, or whose replies have no end.
    private static let refusedNames: Set<String> = [
        "ASKING", "AUTH", "DISCARD", "EXEC", "HELLO", "MONITOR", "MULTI", "PSUBSCRIBE", "PSYNC", "PUNSUBSCRIBE",
        "QUIT", "READONLY", "READWRITE", "RESET", "SELECT", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SYNC",
        "UNSUBSCRIBE", "UNWATCH", "WATCH",
    ]

    /// The error of a command that a client must not send.
    var refusal: RedisError? {
        // hiredis searches the name for commands that subscribe, and must not find one inside of it.
        let isWord = self.name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
        guard isWord, !self.name.isEmpty else {
            return RedisError(.invalidCommand, "\"\(self.name)\" is not the name of a command.")
        }
        let name = self.name.uppercased()
        if Self.refusedNames.contains(name) || (name == "CLIENT" && self.firstWord == "REPLY") {
            return RedisError(.invalidCommand, "\(name) changes the connection, which other commands share.")
        }
        return nil
    }

    private var firstWord: String? {
        switch self.arguments.first {
        case .text(let text): text.uppercased()
        case .data(let data): String(decoding: data, as: UTF8.self).uppercased()
        case nil: nil
        }
    }

    // MARK: Encoding

    /// Words up to this length are collected before they are given to hiredis.
    private static let collectedLength = 16 << 10

    /// Gives the encoded command to `write` in pieces, of which the first contains the name; `scratch` holds them.
    func encode(with scratch: inout [UInt8], to write: (UnsafeRawBufferPointer) -> Void) {
        scratch.removeAll(keepingCapacity: true)
        Self.append("*", self.arguments.count + 1, to: &scratch)
        Self.append(self.name, to: &scratch)
        for argument in self.arguments {
            switch argument {
            case .text(let text): Self.append(text, to: &scratch)
            case .data(let data):
                Self.append("$", data.count, to: &scratch)
                if data.count <= Self.collectedLength {
                    scratch.append(contentsOf: data)
                } else {
                    Self.flush(&scratch, to: write)
                    data.withUnsafeBytes { write($0) }
                }
                scratch.append(UInt8(ascii: "\r"))
                scratch.append(UInt8(ascii: "\n"))
            }
        }
        Self.flush(&scratch, to: write)
    }

    /// Writes the pieces, followed by a zero in memory: hiredis looks at the byte behind a command of one word.
    private static func flush(_ scratch: inout [UInt8], to write: (UnsafeRawBufferPointer) -> Void) {
        scratch.append(0)
        scratch.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0.dropLast())) }
        scratch.removeAll(keepingCapacity: true)
    }

    private static func append(_ text: String, to scratch: inout [UInt8]) {
        var text = text
        text.withUTF8 { bytes in
            self.append("$", bytes.count, to: &scratch)
            scratch.append(contentsOf: bytes)
        }
        scratch.append(UInt8(ascii: "\r"))
        scratch.append(UInt8(ascii: "\n"))
    }

    private static func append(_ sign: Unicode.Scalar, _ count: Int, to scratch: inout [UInt8]) {
        scratch.append(UInt8(ascii: sign))
        if count < 10 {
            scratch.append(UInt8(ascii: "0") + UInt8(count))
        } else {
            scratch.append(contentsOf: String(count).utf8)
        }
        scratch.append(UInt8(ascii: "\r"))
        scratch.append(UInt8(ascii: "\n"))
    }
}
