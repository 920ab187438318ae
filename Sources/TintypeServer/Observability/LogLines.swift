// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Lines of a log, as text (`name=value`) or as JSON.
///
/// A value cannot end a line or a field: quotes, backslashes and control characters are escaped. Lines are built from
/// bytes, because a server writes one for each request.
struct LogLines: Sendable {
    /// The longest value in bytes; the rest is cut.
    static let maximumValueSize = 2_048

    private let format: ImageServer.LogFormat
    /// The lines so far.
    private(set) var bytes: [UInt8] = []
    /// The second of ``secondText``.
    private var second = Int.min
    private var secondText: [UInt8] = []

    /// Starts without lines.
    init(_ format: ImageServer.LogFormat) {
        self.format = format
    }

    /// Moves all lines to `batch`, which must be empty and whose memory the next lines use.
    mutating func move(to batch: inout [UInt8]) {
        swap(&batch, &self.bytes)
    }

    // MARK: Lines

    /// Begins a line.
    ///
    /// - Parameters:
    ///   - level: The level of the line.
    ///   - milliseconds: The time since 1970.
    mutating func begin(_ level: ImageServer.LogLevel, at milliseconds: Int) {
        switch self.format {
        case .text:
            self.appendTime(milliseconds)
            self.bytes.append(UInt8(ascii: " "))
            self.bytes.append(contentsOf: level.rawValue.utf8)
        case .json:
            self.bytes.append(contentsOf: "{\"time\":\"".utf8)
            self.appendTime(milliseconds)
            self.bytes.append(contentsOf: "\",\"level\":\"".utf8)
            self.bytes.append(contentsOf: level.rawValue.utf8)
            self.bytes.append(UInt8(ascii: "\""))
        }
    }

    /// Ends the line.
    mutating func end() {
        if self.format == .json { self.bytes.append(UInt8(ascii: "}")) }
        self.bytes.append(UInt8(ascii: "\n"))
    }

    private mutating func appendTime(_ milliseconds: Int) {
        let second = milliseconds / 1_000
        if second != self.second {
            self.second = second
            self.secondText = Self.text(of: second)
        }
        self.bytes.append(contentsOf: self.secondText)
        self.bytes.append(decimal: milliseconds % 1_000, minimumDigits: 3)
        self.bytes.append(UInt8(ascii: "Z"))
    }

    /// Returns the beginning of a time in UTC, such as `2026-11-27T16:29:16.`.
    private static func text(of second: Int) -> [UInt8] {
        var seconds = time_t(second)
        var time = tm()
        gmtime_r(&seconds, &time)
        var text: [UInt8] = []
        text.append(decimal: Int(time.tm_year) + 1_900, minimumDigits: 4)
        let parts = [
            ("-", time.tm_mon + 1), ("-", time.tm_mday), ("T", time.tm_hour), (":", time.tm_min), (":", time.tm_sec),
        ]
        for (separator, number) in parts {
            text.append(contentsOf: separator.utf8)
            text.append(decimal: Int(number), minimumDigits: 2)
        }
        text.append(UInt8(ascii: "."))
        return text
    }

    // MARK: Fields

    /// Adds a field; a long value is cut.
    mutating func add(_ name: String, _ value: String) {
        self.append(name: name)
        var value = value
        let isAppended = value.withUTF8 { utf8 -> Bool in
            guard utf8.count <= Self.maximumValueSize else { return false }
            if self.format == .text, !utf8.isEmpty, utf8.allSatisfy(Self.isBare) {
                self.bytes.append(contentsOf: utf8)
                return true
            }
            guard utf8.allSatisfy(Self.isPlain) else { return false }
            self.bytes.append(UInt8(ascii: "\""))
            self.bytes.append(contentsOf: utf8)
            self.bytes.append(UInt8(ascii: "\""))
            return true
        }
        if !isAppended { self.append(escaping: value) }
    }

    /// Adds a field with a number.
    mutating func add(_ name: String, _ value: Int) {
        self.append(name: name)
        self.bytes.append(decimal: value)
    }

    /// Adds a field with a number of milliseconds, which has three digits after the point.
    mutating func add(_ name: String, _ duration: Duration) {
        self.append(name: name)
        let (seconds, attoseconds) = min(max(duration, .zero), .seconds(1_000_000_000)).components
        let microseconds = Int(seconds) * 1_000_000 + Int(attoseconds / 1_000_000_000_000)
        self.bytes.append(decimal: microseconds / 1_000)
        self.bytes.append(UInt8(ascii: "."))
        self.bytes.append(decimal: microseconds % 1_000, minimumDigits: 3)
    }

    /// Adds a field whose value needs neither escapes nor a cut, such as an address.
    mutating func add(_ name: String, writing write: (inout [UInt8]) -> Void) {
        self.append(name: name)
        if self.format == .json { self.bytes.append(UInt8(ascii: "\"")) }
        write(&self.bytes)
        if self.format == .json { self.bytes.append(UInt8(ascii: "\"")) }
    }

    private mutating func append(name: String) {
        switch self.format {
        case .text:
            self.bytes.append(UInt8(ascii: " "))
            self.bytes.append(contentsOf: name.utf8)
            self.bytes.append(UInt8(ascii: "="))
        case .json:
            self.bytes.append(contentsOf: ",\"".utf8)
            self.bytes.append(contentsOf: name.utf8)
            self.bytes.append(contentsOf: "\":".utf8)
        }
    }

    /// Appends a value in quotes, with the escapes of JSON.
    private mutating func append(escaping value: String) {
        self.bytes.append(UInt8(ascii: "\""))
        var size = 0
        for scalar in value.unicodeScalars {
            size += scalar.utf8.count
            guard size <= Self.maximumValueSize else {
                self.bytes.append(contentsOf: "...".utf8)
                break
            }
            switch scalar.value {
            case 0x22, 0x5C:
                self.bytes.append(UInt8(ascii: "\\"))
                self.bytes.append(contentsOf: scalar.utf8)
            // Control characters, separators of lines, and marks that change the direction of text.
            case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069:
                self.bytes.append(contentsOf: "\\u".utf8)
                for shift in [12, 8, 4, 0] as [UInt32] {
                    let digit = UInt8(scalar.value >> shift & 0xF)
                    self.bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
                }
            default: self.bytes.append(contentsOf: scalar.utf8)
            }
        }
        self.bytes.append(UInt8(ascii: "\""))
    }

    /// Whether a byte needs no quotes in text.
    private static func isBare(_ byte: UInt8) -> Bool {
        Self.isPlain(byte) && byte != UInt8(ascii: " ") && byte != UInt8(ascii: "=")
    }

    /// Whether a byte needs no escape in quotes.
    private static func isPlain(_ byte: UInt8) -> Bool {
        0x20..<0x7F ~= byte && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }
}

extension [UInt8] {
    /// Appends a number in decimal digits.
    fileprivate mutating func append(decimal number: Int, minimumDigits: Int = 1) {
        let magnitude = number.magnitude
        if number < 0 { self.append(UInt8(ascii: "-")) }
        var divisor: UInt = 1
        var digitCount = 1
        while digitCount < minimumDigits || magnitude / divisor >= 10 {
            divisor *= 10
            digitCount += 1
        }
        while divisor > 0 {
            self.append(UInt8(ascii: "0") + UInt8(magnitude / divisor % 10))
            divisor /= 10
        }
    }
}
