// SPDX-License-Identifier: Apache-2.0

/// The media types that a client accepts (RFC 9110, 12.5.1).
///
/// Malformed elements are ignored, and so are elements with parameters other than a weight. The first of several elements
/// for the same range counts. A request without a valid element accepts every type.
package struct AcceptedTypes: Sendable {
    /// The largest number of elements that count; further ones are ignored.
    static let maximumCount = 64

    private struct Element: Sendable {
        /// A media type, `type/*` or `*/*`.
        let range: Range<Int>
        /// The weight in thousandths.
        let weight: Int
    }

    private var bytes: [UInt8] = []
    private var elements: [Element] = []

    /// Reads the values of all `Accept` fields, in their order.
    package init(_ values: [String]) {
        for value in values {
            let start = self.bytes.count
            self.bytes.append(contentsOf: value.utf8)
            for range in FieldList.ranges(in: self.bytes[start...]) {
                guard self.elements.count < Self.maximumCount else { return }
                if let element = Self.element(self.bytes[range]) { self.elements.append(element) }
            }
        }
    }

    /// Returns the weight of a media type without parameters, from 0 (not acceptable) to 1.
    ///
    /// The most specific range determines the weight.
    package func quality(of type: String) -> Double {
        guard !self.elements.isEmpty else { return 1 }
        let group = type.prefix { $0 != "/" } + "/*"
        let weight = self.weight(of: type) ?? self.weight(of: String(group)) ?? self.weight(of: "*/*") ?? 0
        return Double(weight) / 1_000
    }

    /// Returns whether the client names the type itself as acceptable; wildcards do not count.
    package func names(_ type: String) -> Bool {
        self.weight(of: type).map { $0 > 0 } ?? false
    }

    private func weight(of range: String) -> Int? {
        self.elements.first { ASCIIText.areSame(self.bytes[$0.range], range) }?.weight
    }

    /// Reads one element of the list, which has no white space at its ends.
    private static func element(_ bytes: ArraySlice<UInt8>) -> Element? {
        let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        let range = ASCIIText.trimmed(bytes[..<end])
        guard self.isRange(range) else { return nil }
        // Parameters can be empty. Extensions behind the weight are obsolete, and ignored.
        let parameters = bytes[end...].drop { ASCIIText.isSpace($0) || $0 == UInt8(ascii: ";") }
        guard !parameters.isEmpty else { return Element(range: range.indices, weight: 1_000) }
        let parameter = ASCIIText.trimmed(parameters.prefix { $0 != UInt8(ascii: ";") })
        guard ASCIIText.areSame(parameter.prefix(2), "q="), let weight = self.weight(parameter.dropFirst(2)) else {
            return nil
        }
        return Element(range: range.indices, weight: weight)
    }

    private static func isRange(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let slash = bytes.firstIndex(of: UInt8(ascii: "/")) else { return false }
        let (type, subtype) = (bytes[..<slash], bytes[(slash + 1)...])
        func isWildcard(_ part: ArraySlice<UInt8>) -> Bool { part.count == 1 && part.first == UInt8(ascii: "*") }
        func isToken(_ part: ArraySlice<UInt8>) -> Bool { !part.isEmpty && part.allSatisfy(ByteSet.token.contains) }
        return isToken(type) && isToken(subtype) && (!isWildcard(type) || isWildcard(subtype))
    }

    /// Reads a weight: 0 or 1, with at most three decimal places (RFC 9110, 12.4.2).
    private static func weight(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let first = bytes.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1"),
            bytes.dropFirst().first ?? UInt8(ascii: ".") == UInt8(ascii: ".")
        else { return nil }
        let places = bytes.dropFirst(2)
        guard places.count <= 3, places.allSatisfy(ByteSet.digit.contains) else { return nil }
        var weight = Int(first - UInt8(ascii: "0")) * 1_000
        for (place, unit) in zip(places, [100, 10, 1]) { weight += Int(place - UInt8(ascii: "0")) * unit }
        return weight <= 1_000 ? weight : nil
    }
}
