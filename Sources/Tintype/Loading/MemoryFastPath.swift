// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeHTTP
import TintypeImage
import TintypeRequests

/// The look-ups of images in memory: a hit neither suspends nor allocates, and enters no actor.
///
/// Each hit calls the cache directly, with a key that is lent by the request or made of the URL as spelled. The functions are
/// inlined into the loader's, because a copy of the rules or a count of references costs as much as the look-up itself.
struct MemoryFastPath: Sendable {
    private let memory: MemoryCache
    private let rules: FreshnessRules
    private let activities: ActivityCenter
    /// The requests that the memory answers whatever is known of the entry; empty if requests have to be changed first.
    let unchecked: CachingPlan.UncheckedMemory

    init(memory: MemoryCache, rules: FreshnessRules, hooks: ProgramHooks, activities: ActivityCenter) {
        self.memory = memory
        self.rules = rules
        self.activities = activities
        self.unchecked =
            hooks.changeRequests ? [] : CachingPlan.UncheckedMemory(acceptedUnder: rules.defaultPolicy)
    }

    /// Returns the image at a URL, without options, if any entry may answer.
    ///
    /// To make a request and its key would take a third of the time. Cached keys are canonical: a URL in another spelling
    /// misses here, and is found by the key of its request.
    @inline(__always)
    func uncheckedImage(at url: URL) -> Image? {
        guard self.unchecked.contains(.ofTrustingLoaders),
            let image = self.memory.image(for: RequestKeys.verbatim(url), countsMiss: false)
        else { return nil }
        if self.activities.isObserved { self.reportHit(ImageRequest(url: url)) }
        return image
    }

    /// Returns the image that a request describes, if any entry may answer.
    @inline(__always)
    func uncheckedImage(for request: ImageRequest) -> Image? {
        let image = request.lookUnchecked(accepting: self.unchecked) { self.memory.image(for: $0, countsMiss: false) }
        if image != nil, self.activities.isObserved { self.reportHit(request) }
        return image
    }

    /// Returns the encoded image that a request describes, if any entry may answer.
    @inline(__always)
    func uncheckedEncoded(_ request: ImageRequest, as encoding: OutputEncoding) -> EncodedResponse? {
        let entry = request.lookUnchecked(accepting: self.unchecked) {
            self.memory.encodedEntry(for: $0, encoding: encoding.number(for: request.options), countsMiss: false)
        }
        guard let entry else { return nil }
        self.noteHit(request, .encoded)
        return EncodedResponse(entry, source: .memory)
    }

    /// Returns the entry that a request describes, if it may be served.
    ///
    /// Counts as a hit or a miss, unlike the later look-ups of the same load.
    @inline(__always)
    func entry(for request: ImageRequest) -> (entry: MemoryEntry, decision: ReuseDecision)? {
        let plan = self.rules.plan(for: request)
        guard plan.image.query.contains(.memory),
            let entry = request.lookInMemory({ self.memory.entry(for: $0) })
        else { return nil }
        let decision = self.rules.decision(entry.metadata?.response?.freshness, of: request, under: plan.policy)
        return decision == .revalidate ? nil : (entry, decision)
    }

    /// Returns the preview that a load of `request` shows first.
    func keptPreview(for request: ImageRequest) -> Image? {
        guard request.options.contains(.previews), self.rules.plan(for: request).image.query.contains(.memory) else {
            return nil
        }
        return self.memory.peek(RequestKeys.preview(of: request.key))?.image
    }

    /// Reports a hit, if anything observes the loader; the cache has counted it.
    @inline(__always)
    func noteHit(_ request: ImageRequest, _ product: LoadActivity.Product = .image) {
        if self.activities.isObserved { self.reportHit(request, product) }
    }

    @inline(never)
    private func reportHit(_ request: ImageRequest, _ product: LoadActivity.Product = .image) {
        self.activities.tell(.hit(.memory, tier: nil), product, request)
    }
}

extension ImageResponse {
    /// Creates the response for an entry in memory.
    init(_ entry: MemoryEntry, _ decision: ReuseDecision) {
        self.init(
            image: entry.image,
            source: .memory,
            metadata: entry.metadata ?? EntryMetadata(),
            revalidation: decision == .serve ? nil : .inBackground
        )
    }
}
