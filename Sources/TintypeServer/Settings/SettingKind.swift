// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype

/// A kind of setting: how its texts become a value.
struct SettingKind<Value: Sendable>: Sendable {
    typealias Reader = @Sendable (_ values: [SettingValue], _ warnings: inout [String]) throws(SettingError) -> Value

    /// The name of the value in the help, or `nil` for a switch, whose option has no value.
    let placeholder: String?
    /// Whether the setting collects all values, instead of taking the last one.
    let isList: Bool
    /// Reads the values, at least one, and may add warnings about values without an effect.
    let read: Reader

    /// Creates a kind that reads all values together.
    init(list placeholder: String, read: @escaping Reader) {
        self.placeholder = placeholder
        self.isList = true
        self.read = read
    }

    /// Creates a kind that reads one value.
    init(_ placeholder: String?, read: @escaping @Sendable (SettingValue) throws(SettingError) -> Value) {
        self.placeholder = placeholder
        self.isList = false
        self.read = { (values: [SettingValue], _: inout [String]) throws(SettingError) -> Value in
            guard let value = values.last else { throw SettingError("A setting has no value.") }
            return try read(value)
        }
    }
}

extension SettingKind where Value == Bool {
    /// On or off.
    static var flag: SettingKind {
        SettingKind(nil) { (value: SettingValue) throws(SettingError) -> Bool in
            guard let truth = value.truth else { throw value.error(allowed: "true or false") }
            return truth
        }
    }
}

extension SettingKind where Value == Int {
    /// A whole number.
    static func number(_ range: ClosedRange<Int>) -> SettingKind {
        SettingKind("N") { (value: SettingValue) throws(SettingError) -> Int in try value.number(in: range) }
    }

    /// A number of bytes.
    static var bytes: SettingKind {
        SettingKind("SIZE") { (value: SettingValue) throws(SettingError) -> Int in try value.byteCount() }
    }

    /// The size of a cache in bytes: 0, or at least 1 MiB, because a tiny cache is useless.
    static func cacheBytes(orZero meaning: String) -> SettingKind {
        SettingKind("SIZE") { (value: SettingValue) throws(SettingError) -> Int in
            let count = try value.byteCount()
            guard count == 0 || count >= 1 << 20 else {
                throw value.error(allowed: "at least 1MiB, such as 500MB or 2GiB, or 0 \(meaning)")
            }
            return count
        }
    }

    /// A number of pixels, in megapixels.
    static var megapixels: SettingKind {
        SettingKind("MEGAPIXELS") { (value: SettingValue) throws(SettingError) -> Int in
            guard let number = Double(value.text), (0.000_001...10_000).contains(number) else {
                throw value.error(allowed: "a number of megapixels over 0 and up to 10000")
            }
            return max(1, Int((number * 1_000_000).rounded()))
        }
    }
}

extension SettingKind where Value == Double {
    /// A number from 0 to 1.
    static var fraction: SettingKind {
        SettingKind("N") { (value: SettingValue) throws(SettingError) -> Double in
            guard let number = Double(value.text), (0...1).contains(number) else {
                throw value.error(allowed: "a number from 0 to 1")
            }
            return number
        }
    }
}

extension SettingKind where Value == Duration {
    /// A time of at least a millisecond.
    static var time: SettingKind {
        SettingKind("TIME") { (value: SettingValue) throws(SettingError) -> Duration in
            try value.time(allowsZero: false)
        }
    }

    /// A time that may be zero.
    static var timeOrZero: SettingKind {
        SettingKind("TIME") { (value: SettingValue) throws(SettingError) -> Duration in
            try value.time(allowsZero: true)
        }
    }
}

extension SettingKind where Value == String {
    /// A text without control characters.
    static func text(_ placeholder: String) -> SettingKind {
        SettingKind(placeholder) { (value: SettingValue) throws(SettingError) -> String in
            guard !value.text.hasControlCharacters else { throw value.error(allowed: "text on one line") }
            return value.text
        }
    }

    /// A text that messages do not quote.
    static func secret(_ placeholder: String) -> SettingKind {
        SettingKind(placeholder) { (value: SettingValue) throws(SettingError) -> String in
            guard !value.text.hasControlCharacters else {
                throw SettingError("\(value.spelling) takes text on one line, without control characters.")
            }
            return value.text
        }
    }

    /// One of several names.
    static func choice(_ names: String...) -> SettingKind {
        SettingKind(names.joined(separator: "|")) { (value: SettingValue) throws(SettingError) -> String in
            guard names.contains(value.text) else {
                throw value.error(allowed: "one of \(names.joined(separator: ", "))")
            }
            return value.text
        }
    }
}

extension SettingKind where Value == [String] {
    /// A comma-separated list; repeated options extend it.
    static func list(_ placeholder: String) -> SettingKind {
        SettingKind(list: placeholder) { (values: [SettingValue], _: inout [String]) throws(SettingError) -> [String] in
            values.flatMap { $0.list }
        }
    }

    /// Texts that the setting splits by itself.
    static func texts(_ placeholder: String) -> SettingKind {
        SettingKind(list: placeholder) { (values: [SettingValue], _: inout [String]) throws(SettingError) -> [String] in
            values.map { $0.text }
        }
    }
}

extension SettingKind where Value == URL {
    /// The path of a folder.
    static var folder: SettingKind {
        SettingKind("DIR") { (value: SettingValue) throws(SettingError) -> URL in
            guard !value.text.unicodeScalars.contains("\0") else { throw value.error(allowed: "a path") }
            return URL(filePath: value.text, directoryHint: .isDirectory)
        }
    }

    /// The URL of a server.
    static var server: SettingKind {
        SettingKind("URL") { (value: SettingValue) throws(SettingError) -> URL in
            guard let url = URL(string: value.text), let host = url.host(), !host.isEmpty,
                url.scheme == "http" || url.scheme == "https"
            else { throw value.error(allowed: "a URL such as https://objects.example.org") }
            return url
        }
    }

    /// The URL of an image, or the path of its file.
    static var image: SettingKind {
        SettingKind("URL|FILE") { (value: SettingValue) throws(SettingError) -> URL in
            guard value.text.contains("://") || value.text.hasPrefix("data:") else {
                guard !value.text.unicodeScalars.contains("\0") else { throw value.error(allowed: "a URL or a path") }
                return URL(filePath: value.text)
            }
            guard let url = URL(string: value.text) else { throw value.error(allowed: "a URL or a path") }
            return url
        }
    }
}

extension SettingKind where Value == [ImageFormat] {
    /// The names of formats.
    ///
    /// Formats that Tintype does not write have no effect.
    static var formats: SettingKind {
        SettingKind(list: "FORMATS") {
            (values: [SettingValue], warnings: inout [String]) throws(SettingError) -> [ImageFormat] in
            var formats: [ImageFormat] = []
            for value in values {
                for name in value.list {
                    if let format = try WrittenFormats.format(named: name, in: value, warnings: &warnings) {
                        formats.append(format)
                    }
                }
            }
            return formats
        }
    }
}

extension SettingKind where Value == [ImageFormat: Int] {
    /// Pairs such as `webp=79`.
    static var formatQualities: SettingKind {
        SettingKind(list: "FORMAT=N") {
            (values: [SettingValue], warnings: inout [String]) throws(SettingError) -> [ImageFormat: Int] in
            var qualities: [ImageFormat: Int] = [:]
            for value in values {
                for pair in value.list {
                    let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                    guard parts.count == 2, let quality = Int(parts[1].trimmed), (1...100).contains(quality) else {
                        throw value.error(allowed: "pairs of a format and a quality from 1 to 100, such as webp=79")
                    }
                    let name = parts[0].trimmed
                    if let format = try WrittenFormats.format(named: name, in: value, warnings: &warnings) {
                        qualities[format] = quality
                    }
                }
            }
            return qualities
        }
    }
}

extension SettingKind where Value == AllowedNetworks {
    /// Networks by name or by address.
    static var networks: SettingKind {
        SettingKind(list: "NETWORK") {
            (values: [SettingValue], _: inout [String]) throws(SettingError) -> AllowedNetworks in
            var networks = AllowedNetworks()
            for value in values {
                for text in value.list {
                    guard networks.insert(text) else {
                        throw value.error(
                            allowed: "loopback, link-local, private, or networks such as 10.0.0.0/8 and fd00::/8"
                        )
                    }
                }
            }
            return networks
        }
    }
}

extension SettingKind where Value == Set<Int>? {
    /// Ports, or `any`, which is `nil`.
    static var ports: SettingKind {
        SettingKind(list: "PORT") { (values: [SettingValue], _: inout [String]) throws(SettingError) -> Set<Int>? in
            var ports = Set<Int>()
            for value in values {
                for text in value.list {
                    if text == "any" { return nil }
                    guard let port = Int(text), (1...65_535).contains(port) else {
                        throw value.error(allowed: "ports from 1 to 65535, or any")
                    }
                    ports.insert(port)
                }
            }
            return ports
        }
    }
}

/// The formats that a server can answer with.
enum WrittenFormats {
    static let all: [ImageFormat] = [.jpeg, .png, .webp, .gif]

    /// Returns a format, or `nil` with a warning for a format that imgproxy writes and Tintype does not.
    static func format(
        named name: String,
        in value: SettingValue,
        warnings: inout [String]
    ) throws(SettingError) -> ImageFormat? {
        guard let format = ImageFormat(fileExtension: name) else {
            throw value.error(allowed: "formats such as \(Self.all.map(\.name).joined(separator: ", "))")
        }
        guard Self.all.contains(format) else {
            warnings.append(
                "\(value.spelling) names \(name), which has no effect: Tintype neither reads nor writes that format."
            )
            return nil
        }
        return format
    }
}
