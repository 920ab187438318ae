/// Who may start next.
///
/// Transfers start first come, first served, as long as fewer than `maximumActive` run and
/// their origin has room. One whose origin has none waits aside and holds up nobody else.
///
/// libcurl can count connections per host itself, but keeps all that wait in one list, where
/// one host that hangs holds up the others (seen in 7.88), and a transfer that waits there is
/// hard to tell from one that stalls.
struct TransferQueue {
    private struct Origin {
        var limit: Int
        /// Those that run or are next to run.
        var admitted = 0
        var waiting = FIFO<UInt64>()
    }

    private let maximumActive: Int
    private let maximumPerOrigin: Int
    private var activeCount = 0
    private var origins: [String: Origin] = [:]
    /// Those whose origin has room.
    private var admitted = FIFO<(id: UInt64, origin: String)>()

    init(maximumActive: Int, maximumPerOrigin: Int) {
        self.maximumActive = maximumActive
        self.maximumPerOrigin = maximumPerOrigin
    }

    /// Adds a transfer behind all others.
    mutating func submit(_ id: UInt64, origin name: String) {
        var origin = self.origins[name] ?? Origin(limit: self.maximumPerOrigin)
        if origin.admitted < origin.limit, origin.waiting.isEmpty {
            origin.admitted += 1
            self.admitted.append((id, name))
        } else {
            origin.waiting.append(id)
        }
        self.origins[name] = origin
    }

    /// The transfer to start now, or `nil`.
    ///
    /// Those that are not wanted any more are skipped.
    mutating func next(isWanted: (UInt64) -> Bool) -> UInt64? {
        while self.activeCount < self.maximumActive, let (id, origin) = self.admitted.popFirst() {
            if isWanted(id) {
                self.activeCount += 1
                return id
            }
            self.release(origin)
        }
        return nil
    }

    /// Gives back the place of a transfer that `next` returned.
    mutating func finish(origin: String) {
        self.activeCount -= 1
        self.release(origin)
    }

    /// Remembers that connections to an origin carry many transfers at once.
    mutating func setMultiplexes(origin name: String) {
        guard var origin = self.origins[name], origin.limit < self.maximumActive else { return }
        origin.limit = self.maximumActive
        self.admitWaiting(&origin, name)
        self.origins[name] = origin
    }

    private mutating func release(_ name: String) {
        guard var origin = self.origins[name] else { return }
        origin.admitted -= 1
        self.admitWaiting(&origin, name)
        // A crawler sees many hosts: only what can't be known anew is kept of an idle one.
        let isForgettable = origin.limit == self.maximumPerOrigin || self.origins.count > 1_024
        self.origins[name] = origin.admitted == 0 && isForgettable ? nil : origin
    }

    private mutating func admitWaiting(_ origin: inout Origin, _ name: String) {
        while origin.admitted < origin.limit, let id = origin.waiting.popFirst() {
            origin.admitted += 1
            self.admitted.append((id, name))
        }
    }
}
