/// Who may start next.
///
/// The most urgent starts first, and of equally urgent ones the first or the last that came, as long as fewer
/// than `maximumActive` run and the origin has room and a token. One whose origin has none waits aside and
/// holds up nobody else. A transfer that comes back, after a redirect or for another try, keeps its place.
///
/// No site can hold all places. The last ones are kept for origins that have none, the very last for sites that have
/// none, and transfers that bring next to nothing go on beside the places, up to as many again.
///
/// libcurl can count connections per host itself, but keeps all that wait in one list, where one host that
/// hangs holds up the others (seen in 7.88), and a transfer that waits there is hard to tell from one that
/// stalls.
struct TransferQueue {
    private struct Origin {
        var limit: Int
        var active = 0
        /// Those that wait, and tickets that are no longer valid.
        var tickets = Heap<TransferTicket>()
        var bucket: TokenBucket?
        /// No token before then.
        var throttledUntil: ContinuousClock.Instant?
        var waitingCount = 0
        let site: String

        var hasRoom: Bool { self.active < self.limit && self.throttledUntil == nil }
    }

    /// The best ticket that an origin with room had when it was put here.
    private struct Candidate: Comparable {
        let ticket: TransferTicket
        let origin: String

        static func < (left: Candidate, right: Candidate) -> Bool { left.ticket < right.ticket }
        static func == (left: Candidate, right: Candidate) -> Bool { left.ticket == right.ticket }
    }

    private struct SiteState {
        var active = 0
        /// The origins of the site that wait aside.
        var aside: Set<String> = []
    }

    private struct Throttled: Comparable {
        let end: ContinuousClock.Instant
        let origin: String

        static func < (left: Throttled, right: Throttled) -> Bool { left.end < right.end }
    }

    private let maximumActive: Int
    private let maximumPerOrigin: Int
    private let order: DownloadOrder
    private let rateLimit: RateLimit?
    private var activeCount = 0
    private var laggingCount = 0
    private var sites: [String: SiteState] = [:]
    private var knownSites: [String: String] = [:]
    /// The best of origins that may not have a place that is kept for others: those that have none, and the others.
    private var asideWithoutPlace = Heap<Candidate>()
    private var asideWithPlace = Heap<Candidate>()
    private var origins: [String: Origin] = [:]
    private var waiting: [UInt64: (ticket: TransferTicket, origin: String)] = [:]
    private var candidates = Heap<Candidate>()
    private var throttled = Heap<Throttled>()
    private var sweepThreshold = 1_024
    /// Nothing starts while this is set.
    var isSuspended = false

    init(
        maximumActive: Int,
        maximumPerOrigin: Int,
        order: DownloadOrder = .firstInFirstOut,
        rateLimit: RateLimit? = nil
    ) {
        self.maximumActive = maximumActive
        self.maximumPerOrigin = maximumPerOrigin
        self.order = order
        self.rateLimit = rateLimit
    }

    /// The number of transfers that wait.
    var waitingCount: Int { self.waiting.count }

    /// What is kept, for tests.
    var originCount: Int { self.origins.count }
    var ticketCount: Int {
        self.origins.values.reduce(self.candidateCount) { $0 + $1.tickets.count }
    }
    var siteCount: Int { self.sites.count }
    private var candidateCount: Int {
        self.candidates.count + self.asideWithoutPlace.count + self.asideWithPlace.count
    }

    /// Before this, no origin that ran out of tokens has one.
    var nextTokenTime: ContinuousClock.Instant? { self.isSuspended ? nil : self.throttled.first?.end }

    // MARK: Those that wait

    /// Adds a transfer; ids grow in the order in which transfers were asked for.
    mutating func submit(_ id: UInt64, origin name: String, priority: DownloadPriority = .normal) {
        let order = Int64(truncatingIfNeeded: id)
        let ticket = TransferTicket(
            priority: priority,
            order: self.order == .firstInFirstOut ? order : -order,
            id: id
        )
        self.sweepOrigins()
        self.waiting[id] = (ticket, name)
        if self.origins[name] == nil {
            self.origins[name] = Origin(limit: self.maximumPerOrigin, site: self.site(ofOrigin: name))
        }
        self.origins[name]?.waitingCount += 1
        self.insert(ticket, name)
    }

    /// Takes out one that nobody wants any more; does nothing for one that runs.
    mutating func remove(_ id: UInt64) {
        guard let (_, name) = self.waiting.removeValue(forKey: id) else { return }
        self.origins[name]?.waitingCount -= 1
        self.compact(name)
        self.forgetIfIdle(name, now: nil)
    }

    /// Makes one that waits more or less urgent; does nothing for one that runs.
    mutating func setPriority(_ priority: DownloadPriority, of id: UInt64) {
        guard let (old, name) = self.waiting[id], old.priority != priority else { return }
        let ticket = TransferTicket(priority: priority, order: old.order, id: id)
        self.waiting[id] = (ticket, name)
        self.insert(ticket, name)
        self.compact(name)
    }

    // MARK: Those that run

    /// The transfer to start now, or `nil`.
    mutating func next(now: ContinuousClock.Instant) -> UInt64? {
        guard !self.isSuspended else { return nil }
        self.endThrottling(now)
        while self.freePlaces > 0, let candidate = self.popCandidate() {
            let name = candidate.origin
            guard var origin = self.origins[name], origin.hasRoom else { continue }
            guard candidate.ticket == self.best(of: &origin) else {
                self.origins[name] = origin
                self.offer(name)
                continue
            }
            guard self.mayHavePlace(origin) else {
                self.origins[name] = origin
                self.putAside(candidate, origin)
                continue
            }
            if let end = self.takeToken(&origin, now) {
                origin.throttledUntil = end
                self.origins[name] = origin
                self.throttled.insert(Throttled(end: end, origin: name))
                continue
            }
            origin.tickets.popFirst()
            origin.active += 1
            origin.waitingCount -= 1
            self.origins[name] = origin
            self.activeCount += 1
            self.sites[origin.site, default: SiteState()].active += 1
            self.sites[origin.site]?.aside.remove(name)
            self.waiting[candidate.ticket.id] = nil
            self.offer(name)
            return candidate.ticket.id
        }
        return nil
    }

    /// Gives back the place of a transfer that `next` returned.
    mutating func finish(origin name: String, isLagging: Bool = false) {
        self.activeCount -= 1
        if isLagging { self.laggingCount -= 1 }
        self.origins[name]?.active -= 1
        if let site = self.origins[name]?.site { self.leave(site) }
        self.offer(name)
        self.compact(name)
        self.forgetIfIdle(name, now: nil)
    }

    /// Lets one that runs go on beside the places, or take a place again.
    ///
    /// - Returns: Whether there is room for it.
    mutating func setLagging(_ isLagging: Bool) -> Bool {
        let room = self.maximumActive >= Self.fewestShared ? self.maximumActive - self.laggingCount : 0
        guard isLagging ? room > 0 : self.freePlaces > 0 else { return false }
        self.laggingCount += isLagging ? 1 : -1
        return true
    }

    // MARK: Shares

    /// An origin is forgotten with its last transfer, and mostly comes back.
    private mutating func site(ofOrigin name: String) -> String {
        if let site = self.knownSites[name] { return site }
        if self.knownSites.count >= 256 { self.knownSites.removeAll(keepingCapacity: true) }
        let site = Site.name(ofOrigin: name)
        self.knownSites[name] = site
        return site
    }

    private var freePlaces: Int { self.maximumActive - (self.activeCount - self.laggingCount) }

    /// A caller that allows fewer at once than this counts on exactly so many, in exactly that order.
    private static let fewestShared = 8

    /// The places that are kept for origins that have none; half of them for sites that have none.
    private var keptPlaces: Int { self.maximumActive / Self.fewestShared }

    private func mayHavePlace(_ origin: Origin) -> Bool {
        let free = self.freePlaces
        if free > self.keptPlaces { return true }
        if self.sites[origin.site]?.active ?? 0 == 0 { return true }
        return free > self.keptPlaces / 2 && origin.active == 0
    }

    /// The best of those that may have one of the places that are free.
    private mutating func popCandidate() -> Candidate? {
        if self.asideWithPlace.first == nil, self.asideWithoutPlace.first == nil { return self.candidates.popFirst() }
        let free = self.freePlaces
        let withoutPlace = free > self.keptPlaces / 2 ? self.asideWithoutPlace.first : nil
        let withPlace = free > self.keptPlaces ? self.asideWithPlace.first : nil
        guard let best = [self.candidates.first, withoutPlace, withPlace].compactMap(\.self).min() else { return nil }
        if best == withoutPlace { return self.asideWithoutPlace.popFirst() }
        return best == withPlace ? self.asideWithPlace.popFirst() : self.candidates.popFirst()
    }

    private mutating func putAside(_ candidate: Candidate, _ origin: Origin) {
        if origin.active == 0 {
            self.asideWithoutPlace.insert(candidate)
        } else {
            self.asideWithPlace.insert(candidate)
        }
        self.sites[origin.site]?.aside.insert(candidate.origin)
    }

    /// Lets the origins of a site that has no place any more take part again: they may have what is kept.
    private mutating func leave(_ site: String) {
        guard var state = self.sites[site] else { return }
        state.active -= 1
        self.sites[site] = state.active == 0 ? nil : state
        guard state.active == 0 else { return }
        for name in state.aside { self.offer(name) }
    }

    /// Remembers that connections to an origin carry many transfers at once.
    mutating func setMultiplexes(origin name: String) {
        guard let limit = self.origins[name]?.limit, limit < self.maximumActive else { return }
        self.origins[name]?.limit = self.maximumActive
        self.offer(name)
    }

    // MARK: Origins

    private mutating func insert(_ ticket: TransferTicket, _ name: String) {
        self.origins[name]?.tickets.insert(ticket)
        if self.origins[name]?.tickets.first == ticket { self.offer(name) }
    }

    /// Lets the best of an origin take part, if the origin has room.
    private mutating func offer(_ name: String) {
        guard var origin = self.origins[name], origin.hasRoom else { return }
        let best = self.best(of: &origin)
        self.origins[name] = origin
        if let best { self.candidates.insert(Candidate(ticket: best, origin: name)) }
    }

    private func best(of origin: inout Origin) -> TransferTicket? {
        while let ticket = origin.tickets.first {
            if self.waiting[ticket.id]?.ticket == ticket { return ticket }
            origin.tickets.popFirst()
        }
        return nil
    }

    private func takeToken(_ origin: inout Origin, _ now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let rateLimit else { return nil }
        var bucket = origin.bucket.take() ?? TokenBucket(rateLimit, now: now)
        defer { origin.bucket = bucket }
        return bucket.take(now: now)
    }

    private mutating func endThrottling(_ now: ContinuousClock.Instant) {
        while let first = self.throttled.first, first.end <= now {
            self.throttled.popFirst()
            self.origins[first.origin]?.throttledUntil = nil
            self.offer(first.origin)
            self.forgetIfIdle(first.origin, now: now)
        }
    }

    /// Tickets of those that left would otherwise pile up behind an origin that hangs, and candidates of those that
    /// wait aside each time when their site has no place any more.
    private mutating func compact(_ name: String) {
        if let origin = self.origins[name], origin.tickets.count > origin.waitingCount * 2 + 64 {
            let waiting = self.waiting
            self.origins[name]?.tickets.filter { waiting[$0.id]?.ticket == $0 }
        }
        if self.candidateCount > self.origins.count * 2 + 1_024 {
            // One for each origin is enough: most of the others were the best of theirs once, and still wait.
            self.candidates = Heap()
            self.asideWithoutPlace = Heap()
            self.asideWithPlace = Heap()
            for name in Array(self.origins.keys) { self.offer(name) }
        }
    }

    /// Forgets the idle ones whose tokens have come back meanwhile.
    private mutating func sweepOrigins() {
        guard self.origins.count >= self.sweepThreshold else { return }
        for name in Array(self.origins.keys) { self.forgetIfIdle(name, now: nil) }
        self.sweepThreshold = max(1_024, self.origins.count * 2)
    }

    /// A crawler sees many hosts: only what can't be known anew is kept of an idle one.
    private mutating func forgetIfIdle(_ name: String, now: ContinuousClock.Instant?) {
        guard var origin = self.origins[name], origin.active == 0, origin.waitingCount == 0,
            origin.throttledUntil == nil
        else { return }
        let isForgettable = origin.limit == self.maximumPerOrigin || self.origins.count > 1_024
        guard var bucket = origin.bucket.take() else {
            if isForgettable { self.origins[name] = nil }
            return
        }
        // Its tokens must be waited for, or leaving and coming back would fill the bucket.
        let now = now ?? .now
        if bucket.isFull(now: now) {
            if isForgettable { self.origins[name] = nil }
        } else {
            origin.bucket = bucket
            self.origins[name] = origin
        }
    }
}
