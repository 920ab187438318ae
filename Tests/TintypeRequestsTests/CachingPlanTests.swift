// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCaching

@testable import TintypeRequests

/// The use of the caches, which depends on the request, its options, its URL and the loader.
@Suite struct CachingPlanTests {
    static let variants = CacheUse(query: .all, store: .memory)

    /// The inputs and the expected plan.
    ///
    /// The defaults match the defaults of a request and a loader.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var request: CachePolicy?
        var loader = CachePolicy.neverRevalidate
        var originals = CacheUse.all
        var variants = CachingPlanTests.variants
        var options: LoadOptions = []
        var subject: CachingPlan.Subject = []

        var policy = CachePolicy.neverRevalidate
        var usesHTTPKeys = false
        var obeysHTTP = false
        var bytes = CacheUse.disk
        var image = CacheUse.memory
        var readsDecodedOriginal = false
        var answersUnchecked = true

        init(_ name: String, _ change: (inout Case) -> Void) {
            self.testDescription = name
            change(&self)
        }
    }

    static let policies = [
        Case("nothing is said") { _ in },
        Case("the loader's policy holds") {
            $0.loader = .honorFreshness
            ($0.policy, $0.usesHTTPKeys, $0.obeysHTTP, $0.answersUnchecked) = (.honorFreshness, true, true, false)
        },
        Case("the request's policy beats the loader's") {
            ($0.request, $0.loader) = (.neverRevalidate, .revalidate)
        },
        Case("the request's policy brings its rules") {
            $0.request = .revalidate
            ($0.policy, $0.usesHTTPKeys, $0.obeysHTTP, $0.answersUnchecked) = (.revalidate, true, true, false)
        },
        Case("a reload reads nothing") {
            $0.request = .reload
            ($0.policy, $0.answersUnchecked) = (.reload, false)
            ($0.bytes, $0.image) = (CacheUse(query: .none, store: .disk), CacheUse(query: .none, store: .memory))
        },
        Case("a reload stores by the loader's rules") {
            ($0.request, $0.loader) = (.reload, .honorFreshness)
            ($0.policy, $0.usesHTTPKeys, $0.obeysHTTP, $0.answersUnchecked) = (.reload, true, true, false)
            ($0.bytes, $0.image) = (CacheUse(query: .none, store: .disk), CacheUse(query: .none, store: .memory))
        },
        Case("a loader that always reloads has no rules of HTTP") {
            $0.loader = .reload
            ($0.policy, $0.answersUnchecked) = (.reload, false)
            ($0.bytes, $0.image) = (CacheUse(query: .none, store: .disk), CacheUse(query: .none, store: .memory))
        },
        Case("the cache alone answers whatever the age") {
            $0.request = .cacheOnly
            $0.policy = .cacheOnly
        },
        Case("the cache alone is asked by the loader's names, and judged by no rule") {
            ($0.request, $0.loader) = (.cacheOnly, .honorFreshness)
            ($0.policy, $0.usesHTTPKeys) = (.cacheOnly, true)
        },
    ]

    static let locality = [
        Case("a file is not copied to disk") {
            $0.subject = .local
            $0.bytes = .none
        },
        Case("a file is revalidated, by what the file system knows of it") {
            ($0.request, $0.loader, $0.subject) = (.revalidate, .honorFreshness, .local)
            ($0.policy, $0.obeysHTTP, $0.answersUnchecked, $0.bytes) = (.revalidate, true, false, .none)
        },
        Case("a URL that has its bytes in it is not revalidated") {
            ($0.request, $0.loader, $0.subject) = (.revalidate, .honorFreshness, [.local, .inline])
            $0.bytes = .none
        },
        Case("a file is read again by a reload") {
            ($0.request, $0.loader, $0.subject) = (.reload, .honorFreshness, .local)
            ($0.policy, $0.obeysHTTP, $0.answersUnchecked) = (.reload, true, false)
            ($0.bytes, $0.image) = (.none, CacheUse(query: .none, store: .memory))
        },
        Case("a file is not read where only the cache is asked") {
            ($0.request, $0.loader, $0.subject) = (.cacheOnly, .honorFreshness, .local)
            ($0.policy, $0.bytes) = (.cacheOnly, .none)
        },
    ]

    static let tiers = [
        Case("no tier for the original") {
            $0.originals = .none
            ($0.bytes, $0.image, $0.answersUnchecked) = (.none, .none, false)
        },
        Case("the memory alone") {
            $0.originals = .memory
            $0.bytes = .none
        },
        Case("the disk alone") {
            $0.originals = .disk
            ($0.image, $0.answersUnchecked) = (.none, false)
        },
        Case("a variant goes where variants go") {
            $0.subject = .variant
            $0.image = CachingPlanTests.variants
        },
        Case("a variant is kept on disk where the request says so") {
            ($0.subject, $0.variants) = (.variant, .all)
            $0.image = .all
        },
        Case("a thumbnail is made of the original in memory") {
            $0.subject = [.variant, .derived]
            ($0.image, $0.readsDecodedOriginal) = (CachingPlanTests.variants, true)
        },
        Case("not where the memory is not for originals") {
            ($0.subject, $0.originals) = ([.variant, .derived], .disk)
            $0.image = CachingPlanTests.variants
        },
        Case("nor where everything is loaded again") {
            ($0.request, $0.subject, $0.variants) = (.reload, [.variant, .derived], .all)
            ($0.policy, $0.answersUnchecked) = (.reload, false)
            ($0.bytes, $0.image) = (CacheUse(query: .none, store: .disk), CacheUse(query: .none, store: .all))
        },
    ]

    static let options = [
        Case("a profile is not in the entry of a variant") {
            ($0.options, $0.subject, $0.variants) = (.keepColorProfile, .variant, .all)
            $0.image = .memory
        },
        Case("what is waited for, shown and handed out changes nothing") {
            $0.options = [.waitForStore, .previews, .keepData, .allowTruncated, .allowInvalidCertificates]
        },
    ]

    @Test(arguments: Self.policies + Self.locality + Self.tiers + Self.options)
    func `what is said decides on the plan`(example: Case) {
        let plan = CachingPlan(
            ImageRequest.Caching(
                originals: example.originals,
                variants: example.variants,
                policy: example.request
            ),
            example.options,
            example.subject,
            loaderPolicy: example.loader,
            variantTiers: .memory
        )
        #expect(plan.policy == example.policy)
        #expect(plan.usesHTTPKeys == example.usesHTTPKeys)
        #expect(plan.obeysHTTP == example.obeysHTTP)
        #expect(plan.bytes == example.bytes)
        #expect(plan.image == example.image)
        #expect(plan.readsDecodedOriginal == example.readsDecodedOriginal)
        #expect(plan.answersUnchecked == example.answersUnchecked)
    }

    static let allPolicies = [CachePolicy.neverRevalidate, .honorFreshness, .revalidate, .reload, .cacheOnly]

    @Test(arguments: ["https://example.com/a", "file:///a"], Self.allPolicies)
    func `a hit compares what the plan says`(url: String, loader: CachePolicy) throws {
        let url = try #require(URL(string: url))
        let accepted = CachingPlan.UncheckedMemory(acceptedUnder: loader)
        for policy in Self.allPolicies.map(Optional.some) + [nil] {
            for originals in [CacheUse.all, .disk, .none] {
                let request = ImageRequest(
                    source: .init(url: url),
                    caching: .init(originals: originals, policy: policy)
                )
                let isAnswered = !request.uncheckedMemory.isDisjoint(with: accepted)
                let mayBe = request.cachingPlan(loaderPolicy: loader).answersUnchecked
                #expect(mayBe || !isAnswered)
                // A loader that revalidates still checks the entry of a file, and finds that it needs no revalidation.
                #expect(isAnswered || !mayBe || request.isLocal)
            }
        }
    }
}
