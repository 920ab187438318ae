// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading
import TintypeRendering
import TintypeRequests

/// The parts of a loader that all of its loads work with.
final class LoadServices: Sendable {
    let cache: CacheActor
    let downloads: DownloadActor
    let decoding: DecodePipeline
    let encoding: EncodePipeline
    let rules: FreshnessRules
    let origins: OriginRules
    let sources: StoredSources
    let store: ByteStore
    let variants: VariantPipeline
    let hooks: ProgramHooks
    let activities: ActivityCenter
    /// The sources whose bytes cannot be loaded.
    let failures: FailureMemory
    /// The images that cannot be made of their bytes, although these may be loaded.
    let undecodable: FailureMemory

    init(
        configuration: LoaderActor.Configuration,
        cache: CacheActor,
        downloads: DownloadActor,
        activities: ActivityCenter
    ) {
        let lanes = GatedLanes(
            DecodeLanes(count: configuration.laneCount),
            gate: WeightedGate(capacity: configuration.decodingMemory / 4 * 3),
            usesIdleLanes: configuration.usesIdleLanes
        )
        self.decoding = DecodePipeline(
            registry: configuration.coders,
            lanes: lanes,
            previewGate: WeightedGate(capacity: configuration.decodingMemory / 4),
            limits: configuration.limits
        )
        self.cache = cache
        self.downloads = downloads
        self.encoding = EncodePipeline(registry: configuration.coders, lanes: lanes)
        self.rules = FreshnessRules(configuration)
        self.origins = OriginRules(configuration, downloads)
        self.hooks = ProgramHooks(configuration)
        self.sources = StoredSources(cache: cache, rules: self.rules)
        self.store = ByteStore(
            cache: cache,
            sources: self.sources,
            rules: self.rules,
            hooks: self.hooks,
            activities: activities
        )
        self.variants = VariantPipeline(
            cache: cache,
            decoding: self.decoding,
            encoding: self.encoding,
            rules: self.rules,
            encoder: configuration.variantEncoder,
            activities: activities
        )
        self.activities = activities
        self.failures = FailureMemory(configuration.failureLifetimes, now: configuration.now)
        self.undecodable = FailureMemory(configuration.failureLifetimes, now: configuration.now)
    }
}
