import FoundationEssentials
import TintypeCaching
import TintypeDownloading

/// What a stored response can be asked for by: "has it changed?" (RFC 9111, 4.3).
struct Validators: Sendable, Hashable {
    let etag: String?
    let lastModified: String?

    /// The validators of what is stored; entries of older versions have them as well.
    init(_ metadata: EntryMetadata) {
        self.etag = metadata.response?.values(for: "ETag").first ?? metadata.etag
        self.lastModified = metadata.response?.values(for: "Last-Modified").first ?? metadata.lastModified
    }

    /// The validators in a response.
    init(_ headers: HTTPHeaders) {
        self.etag = headers["ETag"]
        self.lastModified = headers["Last-Modified"]
    }

    var isEmpty: Bool { self.etag == nil && self.lastModified == nil }

    /// The fields that make a request conditional: the tag, which counts first, and the date for those who
    /// know no tags.
    var conditions: [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        if let etag, FieldText.canBeReturned(etag) { fields.append(("If-None-Match", etag)) }
        if let lastModified, FieldText.canBeReturned(lastModified) {
            fields.append(("If-Modified-Since", lastModified))
        }
        return fields
    }

    /// Whether a 304 with the validators `other` is about the response with these (RFC 9111, 4.3.4).
    ///
    /// One without a tag is: the request named no other response, and a date is too weak to contradict.
    func areSelected(by other: Validators) -> Bool {
        guard let tag = other.etag.map({ EntityTag($0) }) else { return true }
        guard let own = self.etag.map({ EntityTag($0) }) else { return false }
        return tag.isStrong ? own.matchesStrongly(tag) : own.matchesWeakly(tag)
    }
}
