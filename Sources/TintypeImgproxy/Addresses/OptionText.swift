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
        let end = segment.firstIndex(of: separator) ?? segment.endIndex
        self.spelling = String(decoding: segment[..<end], as: UTF8.self)
        self.arguments =
            end == segment.endIndex ? [] : segment[(end + separator.count)...].texts(separatedBy: separator)
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
