import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeTransforms

/// The one place where keys are derived from requests.
///
/// A key is a canonical text: the source's on one line, then whether it may be unverified, then a
/// line for each header, then one for what is made of it. Line breaks can't be smuggled in: URLs are percent-encoded, and
/// header lines are escaped.
enum RequestKeys {
    static func source(url: URL, headers: HTTPHeaders, options: LoadOptions) -> CacheKey {
        var text = url.absoluteString
        // What anyone on the way may have written must not answer who asked for the origin's own.
        if options.contains(.allowInvalidCertificates) { text += "\n|unverified" }
        for (name, value) in headers {
            text += "\n\(self.escaped(name.lowercased())): \(self.escaped(value))"
        }
        return CacheKey(text)
    }

    static func picture(source: CacheKey, thumbnail: Resize?, options: LoadOptions) -> CacheKey {
        let decoding = options.intersection(.decoding)
        guard thumbnail != nil || !decoding.isEmpty else { return source }
        var text = source.text + "\n"
        if decoding.contains(.allowTruncated) { text += "|truncated" }
        if let thumbnail { text += "|\(thumbnail.key)" }
        return CacheKey(text)
    }

    private static func escaped(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x0A || $0 == 0x5C }) else { return text }
        return text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    }
}
