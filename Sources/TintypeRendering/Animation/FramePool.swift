// SPDX-License-Identifier: Apache-2.0

import TintypeCoding
import TintypeConcurrency
import TintypeImage

/// Decoded frames of any number of animations, within a limit of bytes.
///
/// The least recently shown frames are removed first.
package final class FramePool: Sendable {
    /// The animation of a frame.
    enum Source: Hashable, Sendable {
        /// All sources that share a name.
        case named(String)
        case object(ObjectIdentifier)
    }

    /// Names a frame: its source and its index.
    struct Key: Hashable, Sendable {
        let source: Source
        let index: Int
    }

    /// A decoder, which lives as long as a source holds it.
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

    /// The bytes of a frame in addition to its pixels: its place in the pool, and the fields of its image.
    private static let entryByteCount = 512

    /// The bytes that the pool may hold: the pixels, and half a kilobyte for each frame.
    package let byteLimit: Int
    private let state = Locked(State())
    private let decoders = Locked<[String: Decoder]>([:])

    /// Creates a pool, by default of 64 MiB.
    ///
    /// A limit of 0 keeps nothing.
    package init(byteLimit: Int = 64 << 20) {
        self.byteLimit = max(0, byteLimit)
    }

    /// The bytes that the pool holds: of pixels, and half a kilobyte for each frame.
    package var byteCount: Int { self.state.withLock { $0.byteCount } }

    /// The frames that the pool holds.
    package var frameCount: Int { self.state.withLock { $0.frameCount } }

    /// Removes every frame.
    package func removeAll() {
        // Free the frames outside the lock.
        let dropped = self.state.withLock { state -> [Entry?] in
            defer { state = State() }
            return state.entries
        }
        withExtendedLifetime(dropped) {}
    }

    /// Whether the pool holds the first `count` frames of a name.
    package func holds(_ count: Int, named name: String) -> Bool {
        self.state.withLock { state in
            let places = state.places[.named(name)] ?? [:]
            return places.count >= count && (0..<count).allSatisfy { places[$0] != nil }
        }
    }

    /// Returns the decoder that sources of a name share, or a new one for the first source and without a name.
    func decoder(named name: String?, make: () -> FrameDecoder) -> FrameDecoder {
        guard let name else { return make() }
        if let decoder = self.decoders.withLock({ $0[name]?.decoder }) { return decoder }
        // Make it outside the lock, because it may start a thread.
        let new = make()
        defer { withExtendedLifetime(new) {} }
        return self.decoders.withLock { decoders in
            // Another source may have come first.
            if let decoder = decoders[name]?.decoder { return decoder }
            decoders[name] = Decoder(decoder: new)
            return new
        }
    }

    /// Removes a decoder that goes away, unless another one has its name by now.
    func forgetDecoder(named name: String) {
        // Free it outside the lock, because its last reference calls this function again.
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

    /// Removes the frames of a source that goes away.
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
