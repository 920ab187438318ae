// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeHTTP
import TintypeImage
import TintypeRequests

/// The rules by which a loader reuses stored responses.
struct FreshnessRules: Sendable {
    /// The policy for requests without a policy of their own.
    let defaultPolicy: CachePolicy
    /// The tiers that store the variants of requests that do not name any.
    private let variantTiers: CacheTiers
    /// Whether the rules for shared caches apply.
    let isShared: Bool
    /// Returns whether a body may be stored at all; `nil` permits bodies that begin like an image.
    private let mayBeStored: (@Sendable (Data) -> Bool)?
    private let coders: CoderRegistry
    let now: @Sendable () -> Date
    /// The fields that the downloader sends unless the request has its own.
    let defaultHeaders: HeaderFields
    /// The fields, in lower case, that choose no representation, as the program says.
    private let neutralHeaders: Set<String>
    /// Whether requests have cookies from a jar.
    private let sendsCookies: Bool
    private let bounds: FreshnessBounds

    init(_ configuration: LoaderActor.Configuration) {
        self.defaultPolicy = configuration.cachePolicy
        self.variantTiers = configuration.variantTiers
        self.isShared = configuration.isSharedCache
        self.mayBeStored = configuration.isStorable
        self.coders = configuration.coders
        self.now = configuration.now
        self.neutralHeaders = Set(configuration.neutralHeaders.map { $0.lowercased() })
        self.sendsCookies = configuration.downloads.cookieJar != nil
        self.bounds = configuration.freshnessBounds
        self.defaultHeaders = [
            "Accept": configuration.downloads.acceptHeader, "User-Agent": configuration.downloads.userAgent,
        ]
    }

    /// Returns the format of a body: a known one, or one of the request's coder or of a registered one.
    func format(of body: Data, for request: ImageRequest) -> ImageFormat? {
        ImageFormat(sniffing: body, among: self.coders.formats(for: request))
    }

    /// Returns whether a body may be stored at all.
    func isStorable(_ body: Data, for request: ImageRequest) -> Bool {
        self.mayBeStored?(body) ?? (self.format(of: body, for: request) != nil)
    }

    /// Returns how a load of `request` uses the caches.
    func plan(for request: ImageRequest) -> CachingPlan {
        request.cachingPlan(loaderPolicy: self.defaultPolicy, variantTiers: self.variantTiers)
    }

    /// Returns all fields that the origin receives and on which responses may vary.
    func headers(of request: ImageRequest) -> HeaderFields {
        var headers = request.headers + self.defaultHeaders.filter { request.headers[$0.name] == nil }
        if headers["Authorization"] == nil, let own = request.authorization {
            headers.append(own, for: "Authorization")
        }
        return headers
    }

    /// Returns the key of the encoded bytes by HTTP's rules; see ``ImageRequest/resourceKey``.
    func resourceKey(of request: ImageRequest) -> CacheKey {
        request.resourceKey(neutral: self.neutralHeaders)
    }

    /// Returns the record with a lifetime within the bounds.
    ///
    /// If it varies on the cookies of a jar, the load revalidates it each time, because the jar may have other cookies
    /// by then.
    func judged(_ record: ResponseRecord, of request: ImageRequest) -> ResponseRecord {
        var freshness = record.freshness
        freshness.lifetime = self.bounds.lifetime(of: record)
        // The defaults are for responses that say nothing; an explicit 0 is a prohibition.
        func says(_ name: String) -> Bool { CacheControl(record.values(for: "Cache-Control")).has(name) }
        if freshness.staleWhileRevalidate == 0, self.bounds.staleWhileRevalidate > .zero,
            !says("stale-while-revalidate")
        {
            freshness.staleWhileRevalidate = self.bounds.staleWhileRevalidate / .seconds(1)
        }
        if freshness.staleIfError == 0, self.bounds.staleIfError > .zero, !says("stale-if-error") {
            freshness.staleIfError = self.bounds.staleIfError / .seconds(1)
        }
        let sendsCookies = request.source.cookies.map { $0 != .disabled } ?? self.sendsCookies
        if sendsCookies, VarySelection.names(in: record.values(for: "Vary"))?.contains("cookie") ?? false {
            freshness.flags.insert(.variesOnEverything)
        }
        guard freshness != record.freshness else { return record }
        return ResponseRecord(
            status: record.status,
            fields: record.fields,
            requestDate: record.requestDate,
            responseDate: record.responseDate,
            selectionDigest: record.selectionDigest,
            freshness: freshness
        )
    }

    /// Returns the decision about the reuse of an entry with this freshness.
    func decision(_ freshness: Freshness?, of request: ImageRequest, under policy: CachePolicy) -> ReuseDecision {
        ReuseDecision(freshness, policy: policy, headers: request.headers, now: self.now())
    }
}

extension ReuseDecision {
    /// Decides about a stored response that a request selects, by the policy of its load.
    ///
    /// Policies that follow HTTP's freshness honour the `Cache-Control` of the request's own `headers`.
    init(_ freshness: Freshness?, policy: CachePolicy, headers: HeaderFields, now: Date) {
        switch policy {
        case .neverRevalidate, .cacheOnly: self = .serve
        case .honorFreshness: self.init(freshness, headers: headers, now: now)
        case .reload: self = .revalidate
        case .revalidate:
            let isPromised = freshness?.flags.contains(.immutable) ?? false
            let isServed = isPromised && ReuseDecision(freshness, headers: headers, now: now) == .serve
            self = isServed ? .serve : .revalidate
        }
    }
}

extension Validators {
    /// Creates the validators of a stored response; entries of older versions have them as well.
    init(_ metadata: EntryMetadata) {
        self.init(
            etag: metadata.response?.fields["ETag"] ?? metadata.etag,
            lastModified: metadata.response?.fields["Last-Modified"] ?? metadata.lastModified
        )
    }
}

extension Precondition {
    /// Returns whether the stored response shows that the caller's own copy is current.
    static func isNotModified(_ headers: HeaderFields, stored metadata: EntryMetadata, now: Date) -> Bool {
        let date = metadata.response?.fields["Date"].flatMap { HTTPDate.parse($0, now: now) }
        return self.isNotModified(
            headers,
            stored: Validators(metadata),
            storedDate: date ?? metadata.response?.responseDate ?? metadata.responseDate,
            now: now
        )
    }
}
