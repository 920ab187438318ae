// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeHTTP
import TintypeImgproxy

/// The work of the server for a URL, planned once for all requests.
final class ImageRoute: Sendable {
    /// The way to the bytes of an answer.
    enum Work: Sendable {
        /// Makes an image of the source, and encodes it.
        case encode(ImageRequest, OutputEncoding)
        /// Sends the source as it is if its format is one of these; otherwise makes an image.
        case skip(Set<ImageFormat>, ImageRequest, OutputEncoding)
        /// Sends the source as it is.
        case raw(ImageRequest)

        /// The encoding of the image; `nil` if the source is sent as it is.
        var encoding: OutputEncoding? {
            switch self {
            case .encode(_, let encoding), .skip(_, _, let encoding): encoding
            case .raw: nil
            }
        }
    }

    let address: ImageAddress
    let work: Work
    /// Whether the answer depends on the `Accept` field of the request.
    let varies: Bool
    /// The URL of the source before its path, such as `https://example.org` or `s3://bucket`.
    ///
    /// It is the unit of fairness among origins.
    let origin: String
    private let place = Locked(WeakPlace())

    private struct WeakPlace: Sendable {
        weak var place: Admission.Place?
    }

    /// The fields of the last answer from memory or disk.
    private let prepared = Locked<Prepared?>(nil)

    /// The fields of an answer, as long as the bytes and their tier stay the same.
    struct Prepared: Sendable {
        let etag: String
        let source: LoadSource
        /// The date in `Last-Modified`, with which conditions are compared.
        let lastModified: Date?
        let head: AnswerHead
        let notModified: AnswerHead

        /// Creates the heads of the 200 and the 304 for `byteCount` bytes.
        init(etag: String, source: LoadSource, lastModified: Date?, fields: FieldLines, byteCount: Int) {
            self.etag = etag
            self.source = source
            self.lastModified = lastModified
            self.notModified = AnswerHead(status: 304, fields: fields)
            var whole = fields
            whole.append(byteCount, for: "Content-Length")
            self.head = AnswerHead(status: 200, fields: whole)
        }
    }

    init(address: ImageAddress, work: Work, varies: Bool, origin: String) {
        self.address = address
        self.work = work
        self.varies = varies
        self.origin = origin
    }

    /// The request whose bytes or image the route needs.
    var request: ImageRequest {
        switch self.work {
        case .encode(let request, _), .skip(_, let request, _), .raw(let request): request
        }
    }

    /// The place of a request for this image that is being answered.
    ///
    /// Other requests share it, because they cause no more work.
    var sharedPlace: Admission.Place? {
        get { self.place.withLock { $0.place } }
        set { self.place.withLock { $0.place = newValue } }
    }

    /// Returns the prepared fields of an answer with this tag, from this tier.
    func prepared(etag: String, source: LoadSource) -> Prepared? {
        self.prepared.withLock { $0?.etag == etag && $0?.source == source ? $0 : nil }
    }

    func prepare(_ prepared: Prepared) {
        self.prepared.withLock { $0 = prepared }
    }
}

/// The routes of the URLs that were requested last.
///
/// Checking a signature and parsing options takes as long as the rest of an answer from memory.
final class RouteTable: Sendable {
    /// The target of a request without its query, and whether its `Accept` field names WebP.
    struct Key: Hashable, Sendable {
        let target: String
        let acceptsWebP: Bool

        /// Removes the query, which belongs to neither the signature nor the image.
        init(target: String, acceptsWebP: Bool) {
            self.target = RequestHead.path(of: target)
            self.acceptsWebP = acceptsWebP
        }
    }

    private struct State {
        /// Two generations: when the young one is full, it becomes the old one, and the old one is dropped.
        var young: [Key: ImageRoute] = [:]
        var old: [Key: ImageRoute] = [:]
        /// The sum of the costs of the young routes.
        var youngCost = 0
        /// The number of times that all routes were removed.
        var removalCount = 0
    }

    private let state = Locked(State())
    private let costLimit: Int

    /// Creates a table for at most `2 * costLimit` routes.
    ///
    /// A route takes about 4 kB, and costs more if its target is long.
    init(costLimit: Int = 1_000) {
        self.costLimit = costLimit
    }

    subscript(key: Key) -> ImageRoute? {
        self.state.withLock { state in
            if let route = state.young[key] { return route }
            guard let route = state.old[key] else { return nil }
            self.insert(route, for: key, &state)
            return route
        }
    }

    /// The number of times that all routes were removed.
    var removalCount: Int { self.state.withLock { $0.removalCount } }

    /// Stores a route, unless all routes were removed after `removalCount` was read: the route may follow old rules.
    func insert(_ route: ImageRoute, for key: Key, madeAfter removalCount: Int) {
        self.state.withLock { state in
            guard state.removalCount == removalCount else { return }
            self.insert(route, for: key, &state)
        }
    }

    func removeAll() {
        self.state.withLock { $0 = State(removalCount: $0.removalCount + 1) }
    }

    private func insert(_ route: ImageRoute, for key: Key, _ state: inout State) {
        let cost = 1 + key.target.utf8.count / 256
        if state.youngCost + cost > self.costLimit {
            state.old = state.young
            state.young = [:]
            state.youngCost = 0
        }
        state.young[key] = route
        state.youngCost += cost
    }
}
