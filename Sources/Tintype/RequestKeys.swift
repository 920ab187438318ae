import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeTransforms

/// The one place where keys are derived from requests.
///
/// A key is a canonical text: the source's on one line, then a line for each header, then one
/// for what is made of it. Line breaks can't be smuggled in: URLs are percent-encoded, and
/// header lines are escaped.
enum RequestKeys {
    static func source(url: URL, headers: HTTPHeaders) -> CacheKey {
        var text = url.absoluteString
        for (name, value) in headers {
            text += "\n\(self.escaped(name.lowercased())): \(self.escaped(value))"
        }
        return CacheKey(text)
    }

    static func picture(
        source: CacheKey,
        thumbnail: Resize?,
        scaleDownLimit: Int?,
        options: LoadOptions
    ) -> CacheKey {
        let decoding = options.intersection(.decoding)
        guard thumbnail != nil || scaleDownLimit != nil || !decoding.isEmpty else { return source }
        var text = source.text + "\n"
        if decoding.contains(.allowTruncated) { text += "|truncated" }
        if decoding.contains(.keepColorProfile) { text += "|profile" }
        // A thumbnail has its size whatever the limit is.
        if thumbnail == nil, let scaleDownLimit { text += "|limit(\(scaleDownLimit))" }
        if let thumbnail { text += "|\(thumbnail.key)" }
        return CacheKey(text)
    }

    private static func escaped(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x0A || $0 == 0x5C }) else { return text }
        return text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    }
}
