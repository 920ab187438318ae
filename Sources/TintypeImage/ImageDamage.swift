// SPDX-License-Identifier: Apache-2.0

/// Damage that a decoder found in the data of an image and continued after: a part of the image may look wrong.
///
/// Data that ends too early is an error instead, unless the decode was asked to accept it.
public struct ImageDamage: OptionSet, Sendable, Hashable, CustomStringConvertible {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Bits that are not a code of their table.
    public static let invalidCodes = ImageDamage(rawValue: 1 << 0)
    /// Data that ends before its blocks do, also at the end of the file if that is accepted.
    public static let missingData = ImageDamage(rawValue: 1 << 1)
    /// Restart markers that are missing or out of order.
    public static let lostRestarts = ImageDamage(rawValue: 1 << 2)
    /// Scans that do not continue the scans before them.
    public static let disorderedScans = ImageDamage(rawValue: 1 << 3)

    /// The kinds of damage in words, one each.
    public var reasons: [String] {
        let names: [(ImageDamage, String)] = [
            (.invalidCodes, "invalid codes"), (.missingData, "missing data"),
            (.lostRestarts, "missing restart markers"), (.disorderedScans, "scans out of order"),
        ]
        return names.filter { self.contains($0.0) }.map(\.1)
    }

    /// The kinds of damage in one line.
    public var description: String { self.reasons.joined(separator: ", ") }
}
