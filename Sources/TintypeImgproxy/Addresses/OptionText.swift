// SPDX-License-Identifier: Apache-2.0

/// An option as a URL or a preset writes it, such as `rs:fill:300:200`.
struct OptionText: Sendable, Hashable {
    let name: OptionName
    /// The name as it is written.
    let spelling: String
    let arguments: [String]

    /// Reads a segment.
    ///
    /// Throws if there is no such option.
    init(_ segment: ArraySlice<UInt8>, separator: [UInt8]) throws(AddressError) {
        var parts = segment.texts(separatedBy: separator)
        self.spelling = parts.removeFirst()
        self.arguments = parts
        guard let name = OptionName(urlName: self.spelling) else {
            let name = Quotation.of(self.spelling)
            throw .invalidURL(
                OptionName.proNames.contains(self.spelling)
                    ? "\(name) is an option of imgproxy Pro, which Tintype does not have."
                    : "There is no option \(name)."
            )
        }
        self.name = name
    }
}

extension ArraySlice<UInt8> {
    /// Returns the texts between the separators; a single one if there is no separator.
    ///
    /// The separator is not empty.
    func texts(separatedBy separator: [UInt8]) -> [String] {
        var texts: [String] = []
        var start = self.startIndex
        var index = start
        while index < self.endIndex {
            if self[index] == separator[0], self[index...].starts(with: separator) {
                texts.append(String(decoding: self[start..<index], as: UTF8.self))
                index += separator.count
                start = index
            } else {
                index += 1
            }
        }
        texts.append(String(decoding: self[start...], as: UTF8.self))
        return texts
    }

    /// Whether the separator occurs.
    ///
    /// It is not empty.
    func contains(_ separator: [UInt8]) -> Bool {
        self.indices.contains { self[$0] == separator[0] && self[$0...].starts(with: separator) }
    }
}
