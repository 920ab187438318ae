// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeFlights
import TintypeHTTP
import TintypeImage
import TintypeRequests

/// Stores and removes encoded bytes on disk under the key that the policy of a request demands.
struct ByteStore: Sendable {
    let cache: CacheActor
    let sources: StoredSources
    let rules: FreshnessRules
    let hooks: ProgramHooks
    let activities: ActivityCenter

    /// Stores bytes in the form that the program's serializer gives them, if a load wants them on disk.
    ///
    /// - Returns: The error if the serializer failed, or if the store failed while a load waited for it.
    func keepSerialized(
        _ body: Data,
        _ metadata: EntryMetadata,
        for request: ImageRequest,
        _ demand: Demand
    ) async -> LoadError? {
        guard demand.storesBytes else {
            return await self.keep(body, metadata: metadata, for: request, demand)
        }
        do {
            guard let stored = try await self.hooks.serialized(body, of: request) else {
                await self.remove(request)
                return nil
            }
            var metadata = metadata
            if stored != body {
                let format = self.rules.format(of: stored, for: request)
                metadata.formatName = format?.name
                metadata.mediaType = format?.mediaType
                metadata.byteCount = stored.count
            }
            return await self.keep(stored, metadata: metadata, for: request, demand)
        } catch {
            return await self.fail(error, storing: metadata, for: request)
        }
    }

    /// Checks that a load has stored its response on disk.
    ///
    /// - Throws: `LoadError` with the reason if it has not.
    func checkStored(_ metadata: EntryMetadata, mayBeKept: Bool, of request: ImageRequest) async throws(LoadError) {
        guard mayBeKept else {
            throw LoadError(
                code: .cacheFailed,
                message: "The response for \(request.displayURL) may not be stored: "
                    + "its header fields, such as no-store, or a hook forbid it. "
                    + "A cache policy that never revalidates stores it whatever its fields say."
            )
        }
        guard await !self.contains(metadata, of: request) else { return }
        // A removal or a newer response that came since does not undo the store.
        if self.rules.plan(for: request).bytes.store.contains(.disk), self.cache.hasByteTiers {
            return
        }
        throw LoadError(
            code: .cacheFailed,
            message: "\(request.displayURL) is not on disk after its load; "
                + "give the loader a disk tier and let the request store in it."
        )
    }

    /// Stores bytes for a request if any load wants that, in the background unless one waits, in place of all older ones
    /// that the request selects; if none does, removes those.
    ///
    /// - Returns: The reason why they are not on disk, if a load waits for the store.
    func keep(
        _ body: Data,
        metadata: EntryMetadata,
        for request: ImageRequest,
        _ demand: Demand
    ) async -> LoadError? {
        await self.uncancelled {
            guard demand.storesBytes else {
                await self.removeOlder(than: metadata, of: request)
                return nil
            }
            do {
                let key = try await self.key(for: metadata, of: request)
                await self.removeOlder(than: metadata, of: request, replacing: key)
                try await self.store(body, metadata, for: key, waits: demand.waitsForStore)
                return nil
            } catch {
                return await self.fail(error, storing: metadata, for: request)
            }
        }
    }

    /// Removes the older entries that a response would have replaced, although its store has failed, and reports the error.
    private func fail(_ error: any Error, storing metadata: EntryMetadata, for request: ImageRequest) async -> LoadError
    {
        await self.removeOlder(than: metadata, of: request)
        return self.activities.tell(storing: error)
    }

    /// Changes the disk to the end, although all callers of the load have left: half of a change could leave older entries.
    private func uncancelled<Result: Sendable>(_ change: @escaping @Sendable () async -> Result) async -> Result {
        await Task { await change() }.value
    }

    private func store(_ data: Data, _ metadata: EntryMetadata, for key: CacheKey, waits: Bool) async throws {
        if waits {
            try await self.cache.storeAndWait(nil, data: data, metadata: metadata, for: key, in: .disk)
        } else {
            await self.cache.store(nil, data: data, metadata: metadata, for: key, in: .disk)
        }
    }

    /// Removes the entries of older bodies that a new response for a request replaces, and all others than `key`.
    ///
    /// A load would find an entry that is left under another policy, or after the new one is lost. The disk may lose the new
    /// one at any time, so that nothing is left with which variants of older bodies can be compared: a reload removes these.
    private func removeOlder(
        than metadata: EntryMetadata,
        of request: ImageRequest,
        replacing key: CacheKey? = nil
    ) async {
        let entries = await self.entries(replacedBy: request)
        let current = entries.filter { $0.metadata.bodyDigest == metadata.bodyDigest }.map(\.key)
        for entry in entries where key.map({ $0 != entry.key }) ?? !current.contains(entry.key) {
            await self.remove(entry)
        }
        if current.isEmpty { await self.removeVariants(of: request) }
    }

    /// Returns the entries that a response for a request replaces: the entry of its own name, and the entries that it
    /// selects by HTTP's names.
    ///
    /// Only loads that use these names replace the latter, and reloads, which replace the entries of all policies. If a
    /// remote tier may have failed to answer, an entry that was not found is one of them.
    private func entries(replacedBy request: ImageRequest) async -> [StoredSource] {
        guard !request.isLocal else { return [] }
        let plan = self.rules.plan(for: request)
        func look(for key: CacheKey) async -> StoredSource? {
            if let found = try? await self.sources.look(for: .metadata, of: key) { return found }
            return self.cache.hasRemoteTiers ? StoredSource(key: key, metadata: EntryMetadata()) : nil
        }
        var entries = [await look(for: request.sourceKey)]
        // Without fields there is one name.
        if !request.headers.isEmpty, plan.usesHTTPKeys || plan.policy == .reload {
            let resource = self.rules.resourceKey(of: request)
            if resource != request.sourceKey {
                let other = await look(for: resource)
                let headers = self.rules.headers(of: request)
                if other?.metadata.response?.isSelected(by: headers) ?? true { entries.append(other) }
            }
            entries.append(try? await self.sources.representation(.metadata, of: resource, selectedBy: request))
        }
        return entries.compactMap { $0 }
    }

    /// Removes the variants of a request's source from disk, if the request is a reload.
    private func removeVariants(of request: ImageRequest) async {
        guard !request.isLocal, self.rules.plan(for: request).policy == .reload else { return }
        // An entry that cannot be removed is as old as it was.
        _ = try? await self.cache.removeFamily(of: request.sourceKey, from: .disk)
    }

    private func remove(_ stored: StoredSource) async {
        // An entry that cannot be removed is as old as before. Every entry is older than the new response.
        _ = try? await self.cache.remove(stored.key, from: .disk, unless: { _ in false })
    }

    /// Returns whether the disk has the response of `metadata` under the name that the request's policy gives it.
    func contains(_ metadata: EntryMetadata, of request: ImageRequest) async -> Bool {
        let name = self.sources.name(of: metadata, for: request)
        guard name.fields != nil else { return await self.cache.contains(name.key, in: .disk) }
        let stored = try? await self.sources.representation(
            .metadata,
            of: self.rules.resourceKey(of: request),
            selectedBy: request
        )
        return stored?.name == name.key
    }

    /// Removes the entries that a response for a request would replace.
    func remove(_ request: ImageRequest) async {
        let plan = self.rules.plan(for: request)
        guard plan.touchesDisk || plan.policy == .reload else { return }
        await self.uncancelled {
            for entry in await self.entries(replacedBy: request) { await self.remove(entry) }
            await self.removeVariants(of: request)
        }
    }

    /// Removes images that were made of bytes that have been replaced, from the tiers that may have them.
    ///
    /// Another machine may have made an image of the newest body already, which stays.
    func removeImages(_ obsolete: [CacheKey: CacheTiers], in flight: FlightState) async {
        // At once, because a tier may take its whole time budget for each.
        await withDiscardingTaskGroup { group in
            for (key, tiers) in obsolete {
                group.addTask {
                    _ = try? await self.cache.remove(key, from: tiers, unless: { flight.isNewest($0.bodyDigest) })
                }
            }
        }
    }

    /// Returns the key for a response, and stores the names of the fields that select it if they are new.
    private func key(for metadata: EntryMetadata, of request: ImageRequest) async throws -> CacheKey {
        let name = self.sources.name(of: metadata, for: request)
        guard let fields = name.fields, let digest = metadata.response?.selectionDigest else { return name.key }
        let resource = self.rules.resourceKey(of: request)
        if let known = try await self.sources.selectors(of: resource), known.names == fields {
            return known.key(of: resource, digest: digest)
        }
        let selectors = Selectors(names: fields)
        let list = selectors.data
        // An older list must not be found if this one cannot be stored.
        let metadata = EntryMetadata(bodyDigest: BodyDigest.value(of: list))
        try await self.store(list, metadata, for: RequestKeys.selectors(of: resource), waits: true)
        // Another process may have stored the same names with a mark of its own.
        if let stored = try await self.sources.selectors(of: resource), stored.names == fields {
            return stored.key(of: resource, digest: digest)
        }
        return selectors.key(of: resource, digest: digest)
    }
}
