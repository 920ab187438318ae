// SPDX-License-Identifier: Apache-2.0

package import TintypeCaching
package import TintypeDownloading

/// The extras that a waiter asks for in addition to the product.
///
/// The demand of a flight is the union of its waiters' demands.
package struct Demand: Hashable, Sendable {
    package var priority = DownloadPriority.veryLow
    package var showsPreviews = false
    package var keepsPreviews = false
    package var keepsData = false
    package var waitsForStore = false
    /// Whether the load tries again although a failure is remembered.
    package var retriesFailed = false
    /// Whether the download is completed for the cache after the last caller has left.
    package var finishesDownload = false
    package var storesBytes = false
    /// The tiers that store the image.
    package var imageTiers = CacheTiers.none
    /// The tiers that store the encoded image.
    package var encodedTiers = CacheTiers.none

    /// Whether any tier stores something.
    package var storesAnything: Bool { self.storesBytes || !self.imageTiers.union(self.encodedTiers).isEmpty }

    package mutating func formUnion(_ other: Demand) {
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
    /// Creates the demand of a waiter that asks only for a priority.
    ///
    /// The compiler's own initialiser is not visible outside the module.
    package init(priority: DownloadPriority = .veryLow) {
        self.init(priority: priority, showsPreviews: false)
    }
}
