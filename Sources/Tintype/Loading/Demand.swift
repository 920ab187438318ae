// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeDownloading

/// The extras that a waiter asks for in addition to the product.
///
/// The demand of a flight is the union of its waiters' demands.
struct Demand: Hashable, Sendable {
    var priority = DownloadPriority.veryLow
    var showsPreviews = false
    var keepsPreviews = false
    var keepsData = false
    var waitsForStore = false
    /// Whether the load tries again although a failure is remembered.
    var retriesFailed = false
    /// Whether the download is completed for the cache after the last caller has left.
    var finishesDownload = false
    var storesBytes = false
    /// The tiers that store the image.
    var imageTiers = CacheTiers.none
    /// The tiers that store the encoded image.
    var encodedTiers = CacheTiers.none

    /// Whether any tier stores something.
    var storesAnything: Bool { self.storesBytes || !self.imageTiers.union(self.encodedTiers).isEmpty }

    mutating func formUnion(_ other: Demand) {
        self.priority = max(self.priority, other.priority)
        self.showsPreviews = self.showsPreviews || other.showsPreviews
        self.keepsPreviews = self.keepsPreviews || other.keepsPreviews
        self.keepsData = self.keepsData || other.keepsData
        self.waitsForStore = self.waitsForStore || other.waitsForStore
        self.retriesFailed = self.retriesFailed || other.retriesFailed
        self.finishesDownload = self.finishesDownload || other.finishesDownload
        self.storesBytes = self.storesBytes || other.storesBytes
        self.imageTiers.formUnion(other.imageTiers)
        self.encodedTiers.formUnion(other.encodedTiers)
    }
}

extension Demand {
    /// Creates the demand of a load.
    init(_ request: ImageRequest, plan: CachingPlan) {
        self.init()
        self.priority = request.priority
        self.showsPreviews = request.options.contains(.previews)
        self.keepsPreviews = request.options.isSuperset(of: [.previews, .keepPreviews])
        self.keepsData = request.options.contains(.keepData)
        self.waitsForStore = request.options.contains(.waitForStore)
        self.retriesFailed = request.options.contains(.retryFailed)
        self.finishesDownload = request.options.contains(.finishDownload)
        self.storesBytes = plan.bytes.store.contains(.disk)
        self.imageTiers = plan.image.store
    }

    /// Creates the demand of a load under the rules of its loader.
    init(_ request: ImageRequest, _ rules: FreshnessRules) {
        self.init(request, plan: rules.plan(for: request))
    }

    /// Creates the demand of a load of an encoded image, which needs neither the bytes nor previews of that image.
    init(_ request: ImageRequest, plan: CachingPlan, encoded caching: CacheUse) {
        self.init(request, plan: plan)
        self.keepsData = false
        self.showsPreviews = false
        self.encodedTiers = caching.store
    }
}
