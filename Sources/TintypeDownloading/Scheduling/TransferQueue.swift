// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// A transfer's place in the queue of its origin: the least ticket starts first.
struct TransferTicket: Comparable {
    var priority: DownloadPriority
    let client: WorkClient?
    /// The round of the transfer at its origin and priority; see ``ClientTurns``.
    var round: Int
    /// Among equally urgent transfers of a round, the one with the smallest order starts first.
    let order: Int64
    let id: UInt64
    /// The number of earlier tickets of this wait, which are no longer valid.
    var changeCount = 0

    static func < (left: TransferTicket, right: TransferTicket) -> Bool {
        left.priority == right.priority && left.round != right.round ? left.round < right.round : left.precedes(right)
    }

    /// Whether the transfer starts before a transfer of another origin, which has rounds of its own.
    func precedes(_ other: TransferTicket) -> Bool {
        self.priority != other.priority ? self.priority > other.priority : self.order < other.order
    }
}

/// Chooses the transfer that may start next.
///
/// The most urgent transfer starts first; equally urgent ones start in the order of their arrival, or the latest first.
/// But the clients of an origin take turns (``ClientTurns``) unless the latest start first. At every fourth start, the
/// oldest transfer with a client starts, because with an endless row of new clients, a round would never end.
///
/// A transfer starts if fewer than `maximumActive` run, and its origin has room and a token. If its origin lacks one of
/// these, it waits aside and does not delay others. After a redirect or for another try, a transfer joins the current
/// round if it stays at its origin, and its client's next round at another one.
///
/// No site can have all places. The last places are reserved for origins without a place, and half of them for sites
/// without a place. Transfers that receive almost nothing run in addition to the places, up to as many again.
///
/// libcurl can limit connections per host itself, but in its single list of waiting transfers, one host that hangs
/// delays the others (seen in 7.88). A transfer that waits there looks like one that stalls.
///
/// Origins and sites are objects. As values in a dictionary, they would be copied with their heaps at each step of a
/// transfer. A copy of the queue would share them.
struct TransferQueue {
    private final class Origin {
        let name: String
        let site: SiteState
        var limit: Int
        var active = 0
        /// The waiting tickets, and tickets that are no longer valid.
        var tickets = Heap<TransferTicket>()
        /// The ticket of the origin's candidate; other candidates of the origin are no longer valid.
        var candidacy: TransferTicket?
        var bucket: TokenBucket?
        /// The time of the next token if the origin has none now.
        var throttledUntil: LoopInstant?
        var waitingCount = 0
        /// The tickets of clients in the order of their arrival.
        var arrivals = Heap<Arrival>()
        /// The number of transfers that have started.
        var startCount = 0
        /// Remembered for as long as transfers wait.
        var turns: [DownloadPriority: ClientTurns] = [:]

        var hasRoom: Bool { self.active < self.limit && self.throttledUntil == nil }

        init(name: String, site: SiteState, limit: Int) {
            self.name = name
            self.site = site
            self.limit = limit
        }

        func addTurn(_ client: WorkClient?, _ priority: DownloadPriority) -> Int {
            self.turns[priority, default: ClientTurns()].add(client)
        }

        /// Makes all clients equal again after the last waiting transfer.
        func forgetTurnsIfNobodyWaits() {
            guard self.waitingCount == 0, !self.turns.isEmpty else { return }
            (self.turns, self.arrivals) = ([:], Heap())
        }
    }

    private final class SiteState {
        let name: String
        var originCount = 0
        var active = 0
        /// The origins of the site that wait aside.
        var aside: Set<String> = []

        init(name: String) {
            self.name = name
        }
    }

    /// The best ticket that an origin with room had when the candidate was created.
    private struct Candidate: Comparable {
        let ticket: TransferTicket
        let origin: Origin

        static func < (left: Candidate, right: Candidate) -> Bool { left.ticket.precedes(right.ticket) }
        static func == (left: Candidate, right: Candidate) -> Bool { left.ticket == right.ticket }
    }

    /// A ticket that is compared without its round.
    private struct Arrival: Comparable {
        let ticket: TransferTicket

        static func < (left: Arrival, right: Arrival) -> Bool { left.ticket.precedes(right.ticket) }
    }

    private struct Throttled: Comparable {
        let end: LoopInstant
        let origin: Origin

        static func == (left: Throttled, right: Throttled) -> Bool { left.end == right.end }
        static func < (left: Throttled, right: Throttled) -> Bool { left.end < right.end }
    }

    private let maximumActive: Int
    private let maximumPerOrigin: Int
    private let order: DownloadActor.Order
    private let rateLimit: RateLimit?
    private var activeCount = 0
    private var laggingCount = 0
    private var sites: [String: SiteState] = [:]
    private var knownSites: [String: String] = [:]
    /// The best candidates of origins that may not use a reserved place.
    private var asideWithoutPlace = Heap<Candidate>()
    private var asideWithPlace = Heap<Candidate>()
    private var origins: [String: Origin] = [:]
    private var waiting: [UInt64: (ticket: TransferTicket, origin: Origin)] = [:]
    private var candidates = Heap<Candidate>()
    private var throttled = Heap<Throttled>()
    private var sweepThreshold = 1_024
    /// Whether no transfer may start.
    var isSuspended = false

    init(
        maximumActive: Int,
        maximumPerOrigin: Int,
        order: DownloadActor.Order = .firstInFirstOut,
        rateLimit: RateLimit? = nil
    ) {
        self.maximumActive = maximumActive
        self.maximumPerOrigin = maximumPerOrigin
        self.order = order
        self.rateLimit = rateLimit
    }

    /// The number of transfers that wait.
    var waitingCount: Int { self.waiting.count }

    /// The number of known origins, for tests.
    var originCount: Int { self.origins.count }
    var ticketCount: Int {
        self.origins.values.reduce(self.candidateCount) { $0 + max($1.tickets.count, $1.arrivals.count) }
    }
    var siteCount: Int { self.sites.count }
    private var candidateCount: Int {
        self.candidates.count + self.asideWithoutPlace.count + self.asideWithPlace.count
    }

    /// The time before which no origin that ran out of tokens gets one.
    var nextTokenTime: LoopInstant? { self.isSuspended ? nil : self.throttled.first?.end }

    // MARK: Waiting transfers

    /// Adds a transfer; ids grow in the order in which transfers were requested.
    mutating func submit(
        _ id: UInt64,
        origin name: String,
        priority: DownloadPriority = .normal,
        client: WorkClient? = nil
    ) {
        self.sweepOrigins()
        let origin = self.origins[name] ?? self.makeOrigin(name)
        let isFirstInFirstOut = self.order == .firstInFirstOut
        let client = isFirstInFirstOut ? client : nil
        let order = Int64(truncatingIfNeeded: id)
        let ticket = TransferTicket(
            priority: priority,
            client: client,
            round: origin.addTurn(client, priority),
            order: isFirstInFirstOut ? order : -order,
            id: id
        )
        self.waiting[id] = (ticket, origin)
        origin.waitingCount += 1
        self.insert(ticket, origin)
    }

    private mutating func makeOrigin(_ name: String) -> Origin {
        let siteName = self.site(ofOrigin: name)
        let site = self.sites[siteName] ?? SiteState(name: siteName)
        self.sites[siteName] = site
        site.originCount += 1
        let origin = Origin(name: name, site: site, limit: self.maximumPerOrigin)
        self.origins[name] = origin
        return origin
    }

    /// Removes a waiting transfer; does nothing if the transfer runs.
    mutating func remove(_ id: UInt64) {
        guard let (ticket, origin) = self.waiting.removeValue(forKey: id) else { return }
        origin.waitingCount -= 1
        origin.turns[ticket.priority]?.remove(ticket.client)
        origin.forgetTurnsIfNobodyWaits()
        self.compact(origin)
        self.forgetIfIdle(origin, now: nil)
    }

    /// Changes the priority of a waiting transfer; does nothing if the transfer runs.
    mutating func setPriority(_ priority: DownloadPriority, of id: UInt64) {
        guard let (old, origin) = self.waiting[id], old.priority != priority else { return }
        var ticket = old
        ticket.priority = priority
        ticket.changeCount += 1
        origin.turns[old.priority]?.remove(old.client)
        ticket.round = origin.addTurn(old.client, priority)
        self.waiting[id] = (ticket, origin)
        self.insert(ticket, origin)
        self.compact(origin)
    }

    // MARK: Running transfers

    /// Gives the next transfer a place and returns it, or returns `nil` if none may start now.
    mutating func next(now: LoopInstant) -> UInt64? {
        guard !self.isSuspended else { return nil }
        self.endThrottling(now)
        while self.freePlaces > 0, let candidate = self.popCandidate() {
            let origin = candidate.origin
            guard candidate.ticket == origin.candidacy else { continue }
            origin.candidacy = nil
            guard origin.hasRoom else { continue }
            guard candidate.ticket == self.best(of: origin), let first = self.firstInTurn(of: origin) else {
                self.offer(origin)
                continue
            }
            guard self.mayHavePlace(origin) else {
                self.putAside(candidate)
                continue
            }
            if let end = self.takeToken(origin, now) {
                origin.throttledUntil = end
                self.throttled.insert(Throttled(end: end, origin: origin))
                continue
            }
            origin.active += 1
            origin.startCount &+= 1
            origin.waitingCount -= 1
            let ticket = candidate.ticket
            let isInTurn = ticket == first
            if isInTurn { origin.tickets.popFirst() } else { origin.arrivals.popFirst() }
            origin.turns[ticket.priority]?.start(ticket.client, round: ticket.round, isInTurn: isInTurn)
            origin.forgetTurnsIfNobodyWaits()
            self.activeCount += 1
            origin.site.active += 1
            if !origin.site.aside.isEmpty { origin.site.aside.remove(origin.name) }
            self.waiting[ticket.id] = nil
            self.offer(origin)
            return ticket.id
        }
        return nil
    }

    /// Frees the place of a transfer that `next` returned.
    mutating func finish(origin name: String, isLagging: Bool = false) {
        self.activeCount -= 1
        if isLagging { self.laggingCount -= 1 }
        guard let origin = self.origins[name] else { return }
        origin.active -= 1
        // An origin without transfers may use a reserved place, so it takes part again if it waits aside.
        if origin.active == 0 { origin.candidacy = nil }
        self.leave(origin.site)
        self.offer(origin)
        self.compact(origin)
        self.forgetIfIdle(origin, now: nil)
    }

    /// Lets a running transfer continue in addition to the places, or take a place again.
    ///
    /// - Returns: Whether there is room for the transfer.
    mutating func setLagging(_ isLagging: Bool) -> Bool {
        let room = self.maximumActive >= Self.fewestShared ? self.maximumActive - self.laggingCount : 0
        guard isLagging ? room > 0 : self.freePlaces > 0 else { return false }
        self.laggingCount += isLagging ? 1 : -1
        return true
    }

    // MARK: Shares

    /// Returns the site of an origin from a small table, because forgotten origins usually come back.
    private mutating func site(ofOrigin name: String) -> String {
        if let site = self.knownSites[name] { return site }
        if self.knownSites.count >= 256 { self.knownSites.removeAll(keepingCapacity: true) }
        let site = Site.name(ofOrigin: name)
        self.knownSites[name] = site
        return site
    }

    private var freePlaces: Int { self.maximumActive - (self.activeCount - self.laggingCount) }

    /// The fewest places to share; a caller with fewer relies on exactly that number and order.
    private static let fewestShared = 8

    /// The places that are reserved for origins without a place, half of them for sites without a place.
    private var keptPlaces: Int { self.maximumActive / Self.fewestShared }

    private func mayHavePlace(_ origin: Origin) -> Bool {
        let free = self.freePlaces
        if free > self.keptPlaces { return true }
        if origin.site.active == 0 { return true }
        return free > self.keptPlaces / 2 && origin.active == 0
    }

    /// Removes and returns the best candidate that may have a free place.
    private mutating func popCandidate() -> Candidate? {
        if self.asideWithPlace.first == nil, self.asideWithoutPlace.first == nil { return self.candidates.popFirst() }
        let free = self.freePlaces
        let withoutPlace = free > self.keptPlaces / 2 ? self.asideWithoutPlace.first : nil
        let withPlace = free > self.keptPlaces ? self.asideWithPlace.first : nil
        guard let best = [self.candidates.first, withoutPlace, withPlace].compactMap(\.self).min() else { return nil }
        if best == withoutPlace { return self.asideWithoutPlace.popFirst() }
        return best == withPlace ? self.asideWithPlace.popFirst() : self.candidates.popFirst()
    }

    private mutating func putAside(_ candidate: Candidate) {
        if candidate.origin.active == 0 {
            self.asideWithoutPlace.insert(candidate)
        } else {
            self.asideWithPlace.insert(candidate)
        }
        candidate.origin.candidacy = candidate.ticket
        candidate.origin.site.aside.insert(candidate.origin.name)
    }

    /// Frees a place of a site; after the last one, its origins may use reserved places, so they take part again.
    private mutating func leave(_ site: SiteState) {
        site.active -= 1
        guard site.active == 0, !site.aside.isEmpty else { return }
        let aside = site.aside
        site.aside = []
        for name in aside {
            guard let origin = self.origins[name] else { continue }
            origin.candidacy = nil
            self.offer(origin)
        }
    }

    /// Records that connections to an origin carry many transfers at once.
    mutating func setMultiplexes(origin name: String) {
        guard let origin = self.origins[name], origin.limit < self.maximumActive else { return }
        origin.limit = self.maximumActive
        self.offer(origin)
    }

    // MARK: Origins

    private mutating func insert(_ ticket: TransferTicket, _ origin: Origin) {
        origin.tickets.insert(ticket)
        if ticket.client != nil { origin.arrivals.insert(Arrival(ticket: ticket)) }
        self.offer(origin)
    }

    /// Makes the best ticket of an origin its candidate, if the origin has room.
    private mutating func offer(_ origin: Origin) {
        guard origin.hasRoom, let best = self.best(of: origin), best != origin.candidacy else { return }
        origin.candidacy = best
        self.candidates.insert(Candidate(ticket: best, origin: origin))
    }

    /// Returns the ticket that starts next at an origin.
    private func best(of origin: Origin) -> TransferTicket? {
        guard let first = self.firstInTurn(of: origin) else { return nil }
        guard origin.startCount % 4 == 3 else { return first }
        while let oldest = origin.arrivals.first?.ticket {
            if self.isWaiting(oldest, for: origin) { return oldest.priority == first.priority ? oldest : first }
            origin.arrivals.popFirst()
        }
        return first
    }

    private func firstInTurn(of origin: Origin) -> TransferTicket? {
        while let ticket = origin.tickets.first {
            if self.isWaiting(ticket, for: origin) { return ticket }
            origin.tickets.popFirst()
        }
        return nil
    }

    /// Whether a ticket is valid: its transfer still waits at this origin, and has no later ticket.
    private func isWaiting(_ ticket: TransferTicket, for origin: Origin) -> Bool {
        guard let (current, place) = self.waiting[ticket.id] else { return false }
        return current == ticket && place === origin
    }

    private func takeToken(_ origin: Origin, _ now: LoopInstant) -> LoopInstant? {
        guard let rateLimit else { return nil }
        var bucket = origin.bucket.take() ?? TokenBucket(rateLimit, now: now)
        defer { origin.bucket = bucket }
        return bucket.take(now: now)
    }

    private mutating func endThrottling(_ now: LoopInstant) {
        while let first = self.throttled.first, first.end <= now {
            self.throttled.popFirst()
            first.origin.throttledUntil = nil
            self.offer(first.origin)
            self.forgetIfIdle(first.origin, now: now)
        }
    }

    /// Removes invalid tickets, which would otherwise accumulate behind an origin that hangs, and invalid candidates.
    private mutating func compact(_ origin: Origin) {
        if max(origin.tickets.count, origin.arrivals.count) > origin.waitingCount * 2 + 64 {
            origin.tickets.filter { self.isWaiting($0, for: origin) }
            origin.arrivals.filter { self.isWaiting($0.ticket, for: origin) }
        }
        if self.candidateCount > self.origins.count * 2 + 1_024 {
            // One candidate for each origin is enough. Most others were once the best ticket of their origin.
            self.candidates = Heap()
            self.asideWithoutPlace = Heap()
            self.asideWithPlace = Heap()
            for origin in self.origins.values {
                origin.candidacy = nil
                self.offer(origin)
            }
        }
    }

    /// Forgets the idle origins whose tokens have come back meanwhile.
    private mutating func sweepOrigins() {
        guard self.origins.count >= self.sweepThreshold else { return }
        for origin in Array(self.origins.values) { self.forgetIfIdle(origin, now: nil) }
        self.sweepThreshold = max(1_024, self.origins.count * 2)
    }

    /// Forgets an idle origin unless its state cannot be learned again, because a crawler visits many hosts.
    private mutating func forgetIfIdle(_ origin: Origin, now: LoopInstant?) {
        guard origin.active == 0, origin.waitingCount == 0, origin.throttledUntil == nil else { return }
        let isForgettable = origin.limit == self.maximumPerOrigin || self.origins.count > 1_024
        // Wait until the bucket is full. Otherwise leaving and coming back would fill it.
        let hasAllTokens = origin.bucket?.isFull(now: now ?? .now) ?? true
        guard isForgettable, hasAllTokens, self.origins[origin.name] === origin else { return }
        self.origins[origin.name] = nil
        origin.site.originCount -= 1
        if origin.site.originCount == 0 { self.sites[origin.site.name] = nil }
    }
}
