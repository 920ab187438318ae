// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import TintypeConcurrency

/// The background stores of one lane that wait to be written, in their order.
///
/// A later store of a key replaces an earlier one that has not been written.
final class PendingStores: Sendable {
    struct Item: Sendable {
        let key: CacheKey
        let data: Data
        let metadata: EntryMetadata
        /// The bytes in memory, including metadata, which may be larger than the body.
        let byteCount: Int
        /// Whether the store was refused or cancelled, so that the lane only removes an outdated entry.
        ///
        /// Until then look-ups find no entry for the key.
        var isRefused = false

        init(key: CacheKey, data: Data, metadata: EntryMetadata) {
            self.key = key
            self.data = data
            self.metadata = metadata
            self.byteCount = data.count + metadata.memoryByteCount + key.excessByteCount
        }

        /// Creates a placeholder for a refused store; the metadata may name its body.
        init(refused key: CacheKey, _ metadata: EntryMetadata) {
            self.init(key: key, data: Data(), metadata: metadata)
            self.isRefused = true
        }
    }

    /// The consequence of adding a store for the caller.
    enum Addition {
        /// A task is already writing, and will write this store.
        case queued
        /// No task is writing, so the caller must start one.
        case queuedFirst
        /// The store was obsolete, and was not added.
        case obsolete
        /// The waiting bytes have reached the limit; the value is their number.
        case refused(Int)
    }

    private struct State {
        var items: [CacheKey: Item] = [:]
        /// The keys in the order of their stores, including some that were already removed out of turn.
        var queue: [CacheKey] = []
        var head = 0
        var byteCount = 0
        var isWriting = false
        /// The store that is being written, which reads must see as well.
        var current: Item?

        /// Replaces the store by a placeholder that removes an older entry of another body.
        ///
        /// Other stores wait, so a task is already writing.
        mutating func refuse(_ item: Item) {
            guard let body = item.metadata.bodyDigest, self.items.count < PendingStores.itemLimit else { return }
            let refused = Item(refused: item.key, EntryMetadata(bodyDigest: body))
            let replaced = self.items.updateValue(refused, forKey: item.key)
            if replaced == nil { self.queue.append(item.key) }
            self.byteCount += refused.byteCount - (replaced?.byteCount ?? 0)
        }

        /// Refuses the stores whose keys satisfy `isUnwanted`.
        ///
        /// - Returns: The refused stores, for the caller to release after the lock.
        mutating func refuse(where isUnwanted: (CacheKey) -> Bool) -> [Item] {
            var unwanted: [Item] = []
            for (key, item) in self.items where !item.isRefused && isUnwanted(key) {
                let refused = Item(refused: key, EntryMetadata())
                self.items[key] = refused
                self.byteCount += refused.byteCount - item.byteCount
                unwanted.append(item)
            }
            if let item = self.current, !item.isRefused, isUnwanted(item.key) {
                self.current?.isRefused = true
                unwanted.append(item)
            }
            return unwanted
        }
    }

    /// The number of waiting stores from which a refused one leaves no placeholder, because the disk is far too slow.
    private static let itemLimit = 65_536

    private let state = Locked(State())
    private let byteLimit: Int
    /// Whether no store waits or is being written, so that reads can skip the lock.
    private let isIdle = Atomic<Bool>(true)

    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    /// Adds a store.
    ///
    /// A single store is accepted at any size. A refused store leaves a placeholder that removes an older entry of
    /// another body. `isObsolete` is called while the stores are locked, so that no change comes between it and the
    /// store.
    func add(_ item: Item, unless isObsolete: () -> Bool = { false }) -> Addition {
        self.state.withLock { state in
            guard !isObsolete() else { return .obsolete }
            let replaced = state.items[item.key]?.byteCount ?? 0
            let byteCount = state.byteCount - replaced + item.byteCount
            guard byteCount <= self.byteLimit || state.items.isEmpty else {
                defer { state.refuse(item) }
                return .refused(state.byteCount)
            }
            if state.items.updateValue(item, forKey: item.key) == nil { state.queue.append(item.key) }
            state.byteCount = byteCount
            self.isIdle.store(false, ordering: .releasing)
            defer { state.isWriting = true }
            return state.isWriting ? .queued : .queuedFirst
        }
    }

    /// Removes the store of `key` out of turn, for the caller to write.
    func take(_ key: CacheKey) -> Item? {
        self.state.withLock { state in
            guard let item = state.items.removeValue(forKey: key) else { return nil }
            state.byteCount -= item.byteCount
            state.current = item
            return item
        }
    }

    /// Discards the store of `key`, and returns whether there was one.
    func drop(_ key: CacheKey) -> Bool {
        let dropped = self.state.withLock { state in
            let item = state.items.removeValue(forKey: key)
            state.byteCount -= item?.byteCount ?? 0
            return item
        }
        return !(dropped?.isRefused ?? true)
    }

    /// Refuses the stores of the family of `key`, and returns whether there were any.
    func refuseFamily(of key: CacheKey) -> Bool {
        guard !self.isIdle.load(ordering: .acquiring) else { return false }
        return !self.state.withLock { $0.refuse { $0.isOfFamily(of: key) } }.isEmpty
    }

    /// Refuses all stores, including the one that is being written.
    ///
    /// Refused stores hide older entries for their keys until those are removed. If the stores were discarded, look-ups
    /// would find the older entries.
    func refuseAll() {
        _ = self.state.withLock { $0.refuse { _ in true } }
    }

    /// Ends the write of the current store, and returns whether it is still wanted.
    ///
    /// A refused store hides the older entry until a call with `isRemoved`.
    func endItem(isRemoved: Bool) -> Bool {
        let ended = self.state.withLock { state -> (isWanted: Bool, item: Item?) in
            let isRefused = state.current?.isRefused ?? false
            if isRefused, !isRemoved { return (false, nil) }
            defer {
                state.current = nil
                self.isIdle.store(state.items.isEmpty, ordering: .releasing)
            }
            return (!isRefused, state.current)
        }
        return ended.isWanted
    }

    /// Returns the store of `key` that waits or is being written.
    func item(_ key: CacheKey) -> Item? {
        guard !self.isIdle.load(ordering: .acquiring) else { return nil }
        return self.state.withLock { state in
            if let item = state.items[key] { return item }
            return state.current?.key == key ? state.current : nil
        }
    }

    /// Removes the next store for the caller to write, or returns `nil` if no store waits.
    func takeNext() -> Item? {
        self.state.withLock { state in
            while state.head < state.queue.count {
                let key = state.queue[state.head]
                state.head += 1
                if state.head >= 1_024, state.head * 2 >= state.queue.count {
                    // Remove the used front half, so that the queue of a lane that never catches up does not grow.
                    state.queue.removeFirst(state.head)
                    state.head = 0
                }
                guard let item = state.items.removeValue(forKey: key) else { continue }
                state.byteCount -= item.byteCount
                state.current = item
                return item
            }
            state.queue.removeAll(keepingCapacity: true)
            state.head = 0
            return nil
        }
    }

    /// Ends the writing if no store waits, and returns whether it did.
    func endWriting() -> Bool {
        self.state.withLock { state in
            guard state.items.isEmpty else { return false }
            state.isWriting = false
            return true
        }
    }

    /// The number of waiting stores.
    var count: Int { self.state.withLock { $0.items.count } }
}
