// SPDX-License-Identifier: Apache-2.0

/// An image format that imgproxy's URLs can name.
///
/// The server decides which of them it writes.
package enum FormatName: String, Sendable, Hashable, CaseIterable, Comparable {
    case avif, bmp, gif, heic, ico, jpeg, jxl, png, svg, tiff, webp

    /// Creates a format from its name in a URL: in lower case, and `jpg` or `jpeg` for JPEG.
    package init?(urlName: String) {
        guard let format = urlName == "jpg" ? .jpeg : FormatName(rawValue: urlName) else { return nil }
        self = format
    }

    /// Output formats of imgproxy Pro.
    static let proNames: Set<String> = ["best", "mp4", "pdf"]

    package static func < (first: FormatName, second: FormatName) -> Bool { first.rawValue < second.rawValue }
}
