// SPDX-License-Identifier: Apache-2.0

/// The part of a URL after the options: a source and the extension of the result.
struct SourceText {
    /// The decoded source, which is not empty.
    let source: [UInt8]
    /// The extension, or an empty text.
    let suffix: String

    /// Reads the text from the first segment that is not an option.
    init(_ text: ArraySlice<UInt8>, includesFileName: Bool) throws(AddressError) {
        let marker = "plain/".utf8
        if text.starts(with: marker) {
            let (source, suffix) = try Self.split(text.dropFirst(marker.count), at: UInt8(ascii: "@"))
            guard let decoded = PercentText.decode(source) else {
                throw .invalidURL("The source has a percent sign without two hexadecimal digits. Write it as %25.")
            }
            (self.source, self.suffix) = (decoded, suffix)
        } else {
            var text = text
            if includesFileName, let slash = text.lastIndex(of: UInt8(ascii: "/")) { text = text[..<slash] }
            let (source, suffix) = try Self.split(text.filter { $0 != UInt8(ascii: "/") }[...], at: UInt8(ascii: "."))
            guard let decoded = Base64URL.decode(source) else {
                throw .invalidURL("The source is not URL-safe Base64. Put \"plain/\" in front of a plain URL.")
            }
            (self.source, self.suffix) = (decoded, suffix)
        }
        guard !self.source.isEmpty else { throw .invalidURL("The source is empty.") }
    }

    /// Splits a text into a source and an extension.
    private static func split(
        _ text: ArraySlice<UInt8>,
        at mark: UInt8
    ) throws(AddressError) -> (source: ArraySlice<UInt8>, suffix: String) {
        let end = text.firstIndex(of: mark) ?? text.endIndex
        let suffix = text[end...].dropFirst()
        guard !suffix.contains(mark) else {
            throw .invalidURL(
                "The source has several characters \"\(Unicode.Scalar(mark))\". Only one may stand before the extension."
            )
        }
        return (text[..<end], String(decoding: suffix, as: UTF8.self))
    }
}
