import FoundationEssentials
import Synchronization
import TintypeConcurrency

/// The stores of one lane that wait to be written in the background, in their order.
///
/// A later store of a key takes the place of an earlier one that has not been written.
final class PendingStores: Sendable {
    struct Item: Sendable {
        let key: CacheKey
        let data: Data
        let metadata: EntryMetadata
        /// What it takes in memory: a tiny body may have large metadata.
        let byteCount: Int
        /// Whether the bytes were refused or are unwanted by now: only the older entry is to go.
        ///
        /// Until then look-ups find nothing under the key.
        var isRefused = false

        init(key: CacheKey, data: Data, metadata: EntryMetadata) {
            self.key = key
            self.data = data
            self.metadata = metadata
            self.byteCount = data.count + metadata.memoryByteCount + key.excessByteCount
        }

        /// Stands for a store that is not carried out, of the body that the metadata names, if it does.
        init(refused key: CacheKey, _ metadata: EntryMetadata) {
            self.init(key: key, data: Data(), metadata: metadata)
            self.isRefused = true
        }
    }

    /// What the caller that adds must do.
    enum Addition {
        /// A task is writing already, and will come to it.
        case queued
        /// No task is writing: start one.
        case queuedFirst
        /// The bytes that wait have reached the limit; this many do.
        case refused(Int)
    }

    private struct State {
        var items: [CacheKey: Item] = [:]
        /// Keys in the order of their stores; some have been taken out of turn.
        var queue: [CacheKey] = []
        var head = 0
        var byteCount = 0
        var isWriting = false
        /// The store that is being written, which a read must see as well.
        var current: Item?

        /// Others wait, so that a task is writing.
        mutating func refuse(_ item: Item) {
            guard let body = item.metadata.bodyDigest, self.items.count < PendingStores.itemLimit else { return }
            let refused = Item(refused: item.key, EntryMetadata(bodyDigest: body))
            let replaced = self.items.updateValue(refused, forKey: item.key)
            if replaced == nil { self.queue.append(item.key) }
            self.byteCount += refused.byteCount - (replaced?.byteCount ?? 0)
        }

        /// Refuses the stores whose keys `isUnwanted` says it of, and says whether there were any.
        ///
        /// - Returns: The stores that waited under these keys, to be released without the lock.
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

    /// The stores beyond which one that is refused leaves no trace: a disk that is as slow as that has older trouble.
    private static let itemLimit = 65_536

    private let state = Locked(State())
    private let byteLimit: Int
    /// Whether nothing waits and nothing is being written: most reads need not look.
    private let isIdle = Atomic<Bool>(true)

    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    /// Adds a store.
    ///
    /// One alone is taken whatever its size. In place of one that is refused, what is there of another body is removed.
    func add(_ item: Item) -> Addition {
        self.state.withLock { state in
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

    /// Takes out the store of `key`, out of turn, to write it.
    func take(_ key: CacheKey) -> Item? {
        self.state.withLock { state in
            guard let item = state.items.removeValue(forKey: key) else { return nil }
            state.byteCount -= item.byteCount
            state.current = item
            return item
        }
    }

    /// Drops the store of `key`, and says whether there was one.
    func drop(_ key: CacheKey) -> Bool {
        let dropped = self.state.withLock { state in
            let item = state.items.removeValue(forKey: key)
            state.byteCount -= item?.byteCount ?? 0
            return item
        }
        return !(dropped?.isRefused ?? true)
    }

    /// Refuses the stores of the family of `key`, and says whether there were any.
    func refuseFamily(of key: CacheKey) -> Bool {
        guard !self.isIdle.load(ordering: .acquiring) else { return false }
        return !self.state.withLock { $0.refuse { $0.isOfFamily(of: key) } }.isEmpty
    }

    /// Refuses all stores, and the one that is being written.
    ///
    /// They hide the older entries under their keys until these are gone: dropped, they would let them be found.
    func refuseAll() {
        _ = self.state.withLock { $0.refuse { _ in true } }
    }

    /// What was taken out has been written, or has failed; says whether it is still wanted.
    ///
    /// A refused store goes on hiding the entry until that `isRemoved`, too.
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

    /// The store of `key` that waits or is being written.
    func item(_ key: CacheKey) -> Item? {
        guard !self.isIdle.load(ordering: .acquiring) else { return nil }
        return self.state.withLock { state in
            if let item = state.items[key] { return item }
            return state.current?.key == key ? state.current : nil
        }
    }

    /// Takes out the next store; `nil` when there is none.
    func takeNext() -> Item? {
        self.state.withLock { state in
            while state.head < state.queue.count {
                let key = state.queue[state.head]
                state.head += 1
                if state.head >= 1_024, state.head * 2 >= state.queue.count {
                    // The front half is used up; a lane that never catches up must not keep its keys.
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

    /// Ends the writing when nothing waits, and says whether it did.
    func endWriting() -> Bool {
        self.state.withLock { state in
            guard state.items.isEmpty else { return false }
            state.isWriting = false
            return true
        }
    }

    /// The stores that wait.
    var count: Int { self.state.withLock { $0.items.count } }
}
