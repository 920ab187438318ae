import TintypeCaching
import TintypeConcurrency

/// Which body of each source is the newest, and which pictures were made of which body.
///
/// Loads of one source overlap: one that began before a refresh may end after it. The ledger decides
/// whose bytes and pictures stay, and names the pictures that a new body makes obsolete.
final class SourceLedger: Sendable {
    /// A load of a source, in the order in which they began.
    struct Ticket: Sendable {
        let source: CacheKey
        let number: UInt64
    }

    enum Verdict: Sendable {
        /// A body that was asked for later has come already: keep nothing of this one.
        case older
        /// It is the newest. These pictures were made of others.
        case newest(obsolete: [CacheKey])
    }

    private struct Source {
        /// The loads that go on.
        var holders = 0
        var lastUse: UInt64 = 0
        /// The newest body, when its load began, and from when on a read finds it on disk.
        var body: UInt64?
        var begun: UInt64 = 0
        var readable: UInt64 = 0
        /// What is, or was, in the cache, and the body that it was made of.
        var pictures: [CacheKey: UInt64] = [:]

        /// What the pictures count towards the limit.
        var weight: Int { self.pictures.keys.reduce(0) { $0 + SourceLedger.weight(of: $1) } }
    }

    private struct State {
        var sources: [CacheKey: Source] = [:]
        /// The pictures, those with long keys several times.
        var pictureCount = 0
        var lastNumber: UInt64 = 0

        mutating func makeNumber() -> UInt64 {
            self.lastNumber += 1
            return self.lastNumber
        }
    }

    private let state = Locked(State())
    private let limit: Int

    /// Remembers up to `limit` pictures; one whose key is long counts as several.
    ///
    /// Beyond, the sources that were not loaded for longest are forgotten: a new body of theirs no longer
    /// makes their pictures obsolete, which live until they are evicted or stale.
    init(limit: Int = 32_768) {
        self.limit = limit
    }

    /// The number of sources that are remembered.
    var count: Int { self.state.withLock { $0.sources.count } }

    /// Begins a load, which must end with ``end(_:)``.
    func begin(_ source: CacheKey) -> Ticket {
        self.state.withLock { state in
            let number = state.makeNumber()
            state.sources[source, default: Source()].holders += 1
            state.sources[source]?.lastUse = number
            return Ticket(source: source, number: number)
        }
    }

    /// Ends a load.
    func end(_ ticket: Ticket) {
        self.state.withLock { state in
            guard var source = state.sources[ticket.source] else { return }
            source.holders -= 1
            let isWanted = source.holders > 0 || !source.pictures.isEmpty
            state.sources[ticket.source] = isWanted ? source : nil
        }
    }

    /// Takes note of a body that the origin sent or confirmed.
    ///
    /// Until ``didStore(_:)`` no read is trusted to find it.
    func accept(_ body: UInt64, _ ticket: Ticket) -> Verdict {
        self.state.withLock { state in
            guard var source = state.sources[ticket.source] else { return .newest(obsolete: []) }
            guard ticket.number > source.begun else { return .older }
            let obsolete = source.pictures.filter { $0.value != body }.map(\.key)
            for key in obsolete { source.pictures[key] = nil }
            state.pictureCount -= obsolete.reduce(0) { $0 + Self.weight(of: $1) }
            source.body = body
            source.begun = ticket.number
            source.readable = .max
            state.sources[ticket.source] = source
            return .newest(obsolete: obsolete)
        }
    }

    /// From now on reads find the body that was accepted, or a newer one of another process.
    func didStore(_ ticket: Ticket) {
        self.state.withLock { state in
            let number = state.makeNumber()
            guard state.sources[ticket.source]?.begun == ticket.number else { return }
            state.sources[ticket.source]?.readable = number
        }
    }

    /// Whether a picture that was made of `body` may be kept under `key`.
    ///
    /// Ask again after it was stored: a newer body may have come in between.
    ///
    /// `read` is the load that read the body from the disk, or `nil` for one that the origin sent.
    func admits(_ key: CacheKey, madeOf body: UInt64, source: CacheKey, read: Ticket?) -> Bool {
        self.state.withLock { state in
            let known = state.sources[source] ?? Source()
            let isNews = read.map { $0.number > known.readable } ?? false
            guard known.body == nil || known.body == body || isNews else { return false }
            let old = state.sources[source, default: Source()].pictures.updateValue(body, forKey: key)
            if isNews { state.sources[source]?.body = body }
            if old == nil {
                state.pictureCount += Self.weight(of: key)
                if state.pictureCount > self.limit { self.forgetOldest(&state) }
            }
            return true
        }
    }

    /// Whether a newer body than this one is known.
    func isObsolete(_ body: UInt64?, source: CacheKey) -> Bool {
        guard let body, let newest = self.state.withLock({ $0.sources[source]?.body }) else { return false }
        return body != newest
    }

    /// One for each begun KiB of a key: URLs that others choose may be as long as they like.
    fileprivate static func weight(of key: CacheKey) -> Int {
        1 + key.text.utf8.count >> 10
    }

    /// Forgets half of the pictures, so that this is seldom done.
    private func forgetOldest(_ state: inout State) {
        for (key, source) in state.sources.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
            guard state.pictureCount > self.limit / 2 else { return }
            state.pictureCount -= source.weight
            // Loads that go on still need their order.
            if source.holders == 0 { state.sources[key] = nil } else { state.sources[key]?.pictures = [:] }
        }
    }
}
