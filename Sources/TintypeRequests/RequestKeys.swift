// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import TintypeCaching
import TintypeDownloading
import TintypeHTTP
package import TintypeImage
import TintypeTransforms

/// Derives keys from requests.
///
/// No other place does.
///
/// A key is a canonical text: a line with the URL as ``CanonicalURL`` writes it, or with the cache key, a line for the
/// fields that tell users and bytes apart, a line for each header, and a line for the image. Keys are written to disk,
/// so they contain secrets only as digests: header values, credentials, the names of jars, and a user and password in
/// the URL.
package enum RequestKeys {
    /// Returns the key of the image at `url`, without headers and options, if the URL is canonical; otherwise a key
    /// without an entry.
    package static func verbatim(_ url: URL) -> CacheKey {
        CacheKey(url.absoluteString)
    }

    /// Returns the key of the bytes from a source that is requested with `headers`.
    static func source(_ source: ImageRequest.Source, _ options: LoadOptions, headers: HeaderFields) -> CacheKey {
        let address = CanonicalURL(source.url)
        var text = source.cacheKey.map { self.standIn($0) } ?? address.text
        if let credentials = address.credentials { text += "\n|user: \(self.digest(credentials))" }
        // Bytes over an unverified connection must not answer a request for the origin's own bytes.
        if options.contains(.allowInvalidCertificates) { text += "\n|unverified" }
        if let fetcher = source.fetcher { text += "\n|fetcher(\(self.digest(fetcher.name)))" }
        if let credentials = source.credentials { text += "\n|credentials(\(self.digest(credentials.identity)))" }
        switch source.cookies {
        case nil: break
        case .disabled: text += "\n|cookies()"
        case .jar(let jar): text += "\n|cookies(\(self.digest(jar.name)))"
        }
        if let hooks = source.hooks { text += "\n|hooks(\(self.digest(hooks.name)))" }
        for field in headers {
            text += "\n\(self.digest(field.name.lowercased())): \(self.digest(field.value))"
        }
        return CacheKey(text)
    }

    /// Returns a cache key of the user as a line that no URL has, without line breaks.
    private static func standIn(_ key: String) -> String {
        let isLine = key.utf8.count <= 256 && key.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        return isLine ? "|key(\(key))" : "|key:\(self.digest(key))"
    }

    /// Returns the key by HTTP's rules: the URL, and every field that may identify the user.
    ///
    /// The response's `Vary` tells the values of the other fields apart: preferences, and the fields in
    /// `neutral` (in lower case). Several fields of a name are one list (RFC 9110, 5.3).
    static func resource(_ source: ImageRequest.Source, _ options: LoadOptions, neutral: Set<String>) -> CacheKey {
        var selecting = HeaderFields()
        for field in source.headers {
            let name = field.name.lowercased()
            guard !WishFields.contains(name), !neutral.contains(name) else { continue }
            selecting.set(selecting[name].map { "\($0), \(field.value)" } ?? field.value, for: name)
        }
        return self.source(source, options, headers: selecting)
    }

    /// Returns the key of the list of fields that select a representation of `resource`.
    package static func selectors(of resource: CacheKey) -> CacheKey {
        resource.derived("selectors")
    }

    /// Returns the name of the representation of `resource` that a request with this digest of its fields selects.
    package static func representation(of resource: CacheKey, digest: String) -> CacheKey {
        resource.derived("vary(\(digest))")
    }

    /// Returns the key of the image that a rendering makes of the bytes from `source`, whose key is `sourceKey`.
    static func image(
        of source: ImageRequest.Source,
        _ sourceKey: CacheKey,
        _ rendering: ImageRequest.Rendering,
        _ options: LoadOptions
    ) -> CacheKey {
        var making = ""
        if options.contains(.allowTruncated) { making += "|truncated" }
        if options.contains(.keepColorProfile) { making += "|profile" }
        if let coder = rendering.coder { making += "|coder(\(self.digest(coder.name)))" }
        // The limit does not change the size of a thumbnail.
        if rendering.thumbnail == nil, let limit = rendering.scaleDownLimit { making += "|limit(\(limit))" }
        if let thumbnail = rendering.thumbnail { making += "|\(thumbnail.key)" }
        if !rendering.transforms.isEmpty { making += "|\(self.line(rendering.transforms.key))" }
        if let scale = self.ownScale(of: source, rendering) { making += "|scale(\(scale))" }
        return making.isEmpty ? sourceKey : sourceKey.derived(making)
    }

    /// Returns the scale, if it differs from the one in the name of the URL; a cache key has no name with a scale.
    private static func ownScale(of source: ImageRequest.Source, _ rendering: ImageRequest.Rendering) -> Double? {
        guard rendering.scale != nil || source.cacheKey != nil else { return nil }
        let named = ScaleName.scale(in: source.url)
        let scale = rendering.scale ?? named
        return scale == (source.cacheKey == nil ? named : 1) ? nil : scale
    }

    /// Returns the key of previews, which no load of the image itself finds.
    package static func preview(of image: CacheKey) -> CacheKey {
        image.derived("|preview")
    }

    /// Returns the key of the frames of a body for `request`.
    package static func frames(of request: ImageRequest, body: UInt64) -> String {
        let limits = request.transport.decodingLimits.map { "\($0)" } ?? ""
        let isStill = request.options.contains(.firstFrameOnly)
        return "\(request.key.text)\n|frames(\(body), \(limits), \(isStill))"
    }

    /// Returns the key of a decode for `request` of the bytes of flight `id`, or of a `part` of its results.
    ///
    /// `decoding` names the coder and its options. No cache has an entry under the key.
    package static func step(
        _ step: PixelLayout,
        of request: ImageRequest,
        decoding: String,
        broughtBy id: UInt64,
        part: String = ""
    ) -> CacheKey {
        let size = "\(step.width)x\(step.height), \(step.format)"
        let name = "\(id), \(size), \(decoding)"
        let line = part.isEmpty ? "" : "\n|part(\(self.line(part)))"
        return CacheKey("\(request.sourceKey.text)\n|step(\(name))\(line)")
    }

    /// Returns the transforms as a part of a line; one of them may be the program's own.
    private static func line(_ key: String) -> String {
        let isLine = key.utf8.count <= 512 && key.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        return isLine ? key : "transforms(\(self.digest(key)))"
    }

    private static func digest(_ text: String) -> String {
        CacheKey(text).digest
    }
}

/// The kinds of URL schemes.
enum URLScheme {
    case http, file, data
    /// A scheme that only a fetcher may know.
    case other
    /// No scheme.
    case none

    init(of url: URL) {
        let text = url.absoluteString
        if text.hasPrefix("https:") || text.hasPrefix("http:") {
            self = .http
            return
        }
        let end = text.utf8.firstIndex { [UInt8(ascii: ":"), UInt8(ascii: "/"), UInt8(ascii: "?")].contains($0) }
        guard let end, text.utf8[end] == UInt8(ascii: ":"), end > text.startIndex else {
            self = .none
            return
        }
        self =
            switch text[..<end].lowercased() {
            case "http", "https": .http
            case "file": .file
            case "data": .data
            default: .other
            }
    }
}

/// The scale in an image's name: `photo@2x.png` has two pixels for each point.
enum ScaleName {
    /// Returns the scale in the name at the end of a URL's path: 2 or 3, or 1 without a scale in the name.
    static func scale(in url: URL) -> Double {
        let text = Array(url.absoluteString.utf8)
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), text.count > colon + 1 else { return 1 }
        let end = text.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? text.endIndex
        guard colon < end else { return 1 }
        var path = text[(colon + 1)..<end]
        if path.starts(with: "//".utf8) {
            // A user's name may look like a scale.
            guard let slash = path.dropFirst(2).firstIndex(of: UInt8(ascii: "/")) else { return 1 }
            path = path[slash...]
        }
        let name = path.lastIndex(of: UInt8(ascii: "/")).map { path[($0 + 1)...] } ?? path
        // The search below takes as long as all of the rest together.
        guard name.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "%") }) else { return 1 }
        for (mark, scale) in [("@2x.", 2.0), ("@3x.", 3), ("%402x.", 2), ("%403x.", 3)] {
            if name.firstRange(of: Array(mark.utf8)) != nil { return scale }
        }
        return 1
    }
}
