import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeHTTP
import TintypeImage
import TintypeTransforms

/// The one place where keys are derived from requests.
///
/// A key is a canonical text: the URL on one line, as ``CanonicalURL`` writes it, then whether it may
/// be unverified, then a line for each header, then one for what is made of it. Keys are written to
/// disk, so that what may be a secret is in them only as a digest: header values, and a user and
/// password in the URL.
enum RequestKeys {
    /// The key of the picture at `url`, without headers and options, if the URL is canonical; else a key of nothing.
    static func verbatim(_ url: URL) -> CacheKey {
        CacheKey(url.absoluteString)
    }

    static func source(
        url: URL,
        headers: HeaderFields,
        fetcher: CustomFetcher? = nil,
        options: LoadOptions
    ) -> CacheKey {
        let address = CanonicalURL(url)
        var text = address.text
        if let credentials = address.credentials { text += "\n|user: \(self.digest(credentials))" }
        // What anyone on the way may have written must not answer a request for the origin's own bytes.
        if options.contains(.allowInvalidCertificates) { text += "\n|unverified" }
        if let fetcher { text += "\n|fetcher(\(self.digest(fetcher.name)))" }
        for field in headers {
            text += "\n\(self.digest(field.name.lowercased())): \(self.digest(field.value))"
        }
        return CacheKey(text)
    }

    /// The key of HTTP: the URL, and every field that may identify the user.
    ///
    /// The others, which say what is wanted or are among `neutral` (in lower case), are told apart by the
    /// response's `Vary`. Several fields of a name are one list (RFC 9110, 5.3).
    static func resource(
        url: URL,
        headers: HeaderFields,
        fetcher: CustomFetcher? = nil,
        options: LoadOptions,
        neutral: Set<String> = []
    ) -> CacheKey {
        var selecting = HeaderFields()
        for field in headers {
            let name = field.name.lowercased()
            guard !WishFields.contains(name), !neutral.contains(name) else { continue }
            selecting.set(selecting[name].map { "\($0), \(field.value)" } ?? field.value, for: name)
        }
        return self.source(url: url, headers: selecting, fetcher: fetcher, options: options)
    }

    /// Where the names of the fields are kept that select a representation of `resource`.
    static func selectors(of resource: CacheKey) -> CacheKey {
        CacheKey("\(resource.text)\n|vary")
    }

    /// The representation of `resource` that a request with this digest of its fields selects.
    static func representation(of resource: CacheKey, digest: String) -> CacheKey {
        CacheKey("\(resource.text)\n|vary(\(digest))")
    }

    static func picture(
        source: CacheKey,
        thumbnail: Resize?,
        scaleDownLimit: Int?,
        coder: CustomCoder?,
        options: LoadOptions
    ) -> CacheKey {
        let decoding = options.intersection(.decoding)
        guard thumbnail != nil || scaleDownLimit != nil || coder != nil || !decoding.isEmpty else { return source }
        var text = source.text + "\n"
        if decoding.contains(.allowTruncated) { text += "|truncated" }
        if decoding.contains(.keepColorProfile) { text += "|profile" }
        if let coder { text += "|coder(\(self.digest(coder.name)))" }
        // A thumbnail has its size whatever the limit is.
        if thumbnail == nil, let scaleDownLimit { text += "|limit(\(scaleDownLimit))" }
        if let thumbnail { text += "|\(thumbnail.key)" }
        return CacheKey(text)
    }

    /// Names what a codec gives of a body for `request`, whatever size that asks for; it is never in a cache.
    static func step(_ step: PixelLayout, of request: ImageRequest, body: UInt64) -> CacheKey {
        let options = request.options.intersection(.decoding).rawValue
        let coder = request.coder.map { self.digest($0.name) } ?? ""
        return CacheKey(
            "\(request.sourceKey.text)\n|step(\(body), \(step.width)x\(step.height), \(step.format), \(coder), \(options))"
        )
    }

    /// Whether the bytes that `source` names need no network: those of a `file:` or `data:` URL.
    static func subject(of source: CacheKey) -> CachingPlan.Subject {
        let text = source.text.utf8
        if text.starts(with: "data:".utf8) { return [.local, .inline] }
        return text.starts(with: "file:".utf8) ? .local : []
    }

    private static func digest(_ text: String) -> String {
        CacheKey(text).digest
    }
}
