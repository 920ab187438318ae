import TintypeCoding
import TintypeConcurrency
import TintypeImage

/// Decoded frames of any number of animations, within a limit of bytes: the least recently
/// shown go first.
public final class FramePool: Sendable {
    /// What frames are of.
    enum Source: Hashable, Sendable {
        /// All that share a name.
        case named(String)
        case object(ObjectIdentifier)
    }

    /// Names a frame: its source and its index.
    struct Key: Hashable, Sendable {
        let source: Source
        let index: Int
    }

    /// One that lives as long as a source has it.
    private struct Decoder: Sendable {
        weak let decoder: FrameDecoder?
    }

    /// A frame and its neighbours in the order of use.
    fileprivate struct Entry {
        let key: Key
        let image: Image
        var newer: Int?
        var older: Int?
    }

    fileprivate struct State {
        /// Where each source's frames are in `entries`.
        var places: [Source: [Int: Int]] = [:]
        var entries: [Entry?] = []
        var vacancies: [Int] = []
        var newest: Int?
        var oldest: Int?
        var byteCount = 0
        var frameCount = 0
    }

    /// What a frame takes besides its pixels: its place in the pool, its picture's own fields.
    private static let entryByteCount = 512

    /// The bytes of pixels that the pool may hold; a frame of few pixels counts as half a kilobyte more.
    public let byteLimit: Int
    private let state = Locked(State())
    private let decoders = Locked<[String: Decoder]>([:])

    /// Creates a pool; default 64 MiB.
    ///
    /// A limit of 0 keeps nothing.
    public init(byteLimit: Int = 64 << 20) {
        self.byteLimit = max(0, byteLimit)
    }

    /// The bytes that the pool holds: of pixels, and half a kilobyte for each frame.
    public var byteCount: Int { self.state.withLock { $0.byteCount } }

    /// The frames that the pool holds.
    public var frameCount: Int { self.state.withLock { $0.frameCount } }

    /// Drops every frame.
    public func removeAll() {
        // What is dropped is freed outside the lock.
        let dropped = self.state.withLock { state -> [Entry?] in
            defer { state = State() }
            return state.entries
        }
        withExtendedLifetime(dropped) {}
    }

    /// Whether the first `count` frames of a name are there.
    package func holds(_ count: Int, named name: String) -> Bool {
        self.state.withLock { state in
            let places = state.places[.named(name)] ?? [:]
            return places.count >= count && (0..<count).allSatisfy { places[$0] != nil }
        }
    }

    /// The decoder that sources of a name share; a new one for the first of them, and without a name.
    func decoder(named name: String?, make: () -> FrameDecoder) -> FrameDecoder {
        guard let name else { return make() }
        if let decoder = self.decoders.withLock({ $0[name]?.decoder }) { return decoder }
        // Outside the lock: it may start a thread.
        let new = make()
        defer { withExtendedLifetime(new) {} }
        return self.decoders.withLock { decoders in
            // Another source may have been first meanwhile.
            if let decoder = decoders[name]?.decoder { return decoder }
            decoders[name] = Decoder(decoder: new)
            return new
        }
    }

    /// Forgets a decoder that goes away, unless there is another one of its name by now.
    func forgetDecoder(named name: String) {
        // Let go of outside the lock: the last reference to it comes here again.
        let other = self.decoders.withLock { decoders -> FrameDecoder? in
            guard let entry = decoders[name] else { return nil }
            let decoder = entry.decoder
            if decoder == nil { decoders[name] = nil }
            return decoder
        }
        _ = consume other
    }

    func image(for key: Key) -> Image? {
        self.state.withLock { state -> Image? in
            guard let place = state.places[key.source]?[key.index] else { return nil }
            state.unlink(place)
            state.linkAsNewest(place)
            return state.entries[place]?.image
        }
    }

    func insert(_ image: Image, for key: Key) {
        let size = Self.cost(of: image)
        guard size <= self.byteLimit else { return }
        let dropped = self.state.withLock { state -> [Entry] in
            var dropped: [Entry] = []
            if let place = state.places[key.source]?[key.index], let old = state.remove(place) { dropped.append(old) }
            while state.byteCount + size > self.byteLimit, let oldest = state.oldest, let entry = state.remove(oldest) {
                dropped.append(entry)
            }
            state.insert(image, for: key)
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    /// Drops the frames of a source that goes away.
    func removeAll(of source: Source) {
        let dropped = self.state.withLock { state in
            (state.places[source] ?? [:]).values.compactMap { state.remove($0) }
        }
        withExtendedLifetime(dropped) {}
    }

    /// The bytes that a frame is counted with.
    static func cost(of image: Image) -> Int {
        image.pixels.byteCount.saturatingAdded(to: Self.entryByteCount)
    }
}

extension FramePool.State {
    fileprivate mutating func insert(_ image: Image, for key: FramePool.Key) {
        let place = self.vacancies.popLast() ?? self.entries.count
        if place == self.entries.count { self.entries.append(nil) }
        self.entries[place] = FramePool.Entry(key: key, image: image)
        self.places[key.source, default: [:]][key.index] = place
        self.byteCount += FramePool.cost(of: image)
        self.frameCount += 1
        self.linkAsNewest(place)
    }

    fileprivate mutating func remove(_ place: Int) -> FramePool.Entry? {
        self.unlink(place)
        guard let entry = self.entries[place] else { return nil }
        self.entries[place] = nil
        self.vacancies.append(place)
        self.places[entry.key.source]?[entry.key.index] = nil
        if self.places[entry.key.source]?.isEmpty == true { self.places[entry.key.source] = nil }
        self.byteCount -= FramePool.cost(of: entry.image)
        self.frameCount -= 1
        return entry
    }

    fileprivate mutating func linkAsNewest(_ place: Int) {
        self.entries[place]?.older = self.newest
        self.entries[place]?.newer = nil
        if let newest { self.entries[newest]?.newer = place } else { self.oldest = place }
        self.newest = place
    }

    fileprivate mutating func unlink(_ place: Int) {
        guard let entry = self.entries[place] else { return }
        if let newer = entry.newer { self.entries[newer]?.older = entry.older } else { self.newest = entry.older }
        if let older = entry.older { self.entries[older]?.newer = entry.newer } else { self.oldest = entry.newer }
    }
}
