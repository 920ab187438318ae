import TintypeConcurrency
import TintypeImage

/// Decoded frames of any number of animations, within a limit of bytes: the least recently
/// shown go first.
public final class FramePool: Sendable {
    /// Names a frame: its source and its index.
    struct Key: Hashable, Sendable {
        let source: ObjectIdentifier
        let index: Int
    }

    private struct Entry {
        let image: Image
        var lastUse: UInt64
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var byteCount = 0
        var clock: UInt64 = 0
    }

    /// The bytes of pixels that the pool may hold.
    public let byteLimit: Int
    private let state = Locked(State())

    /// Creates a pool; default 64 MiB.
    ///
    /// A limit of 0 keeps nothing.
    public init(byteLimit: Int = 64 << 20) {
        self.byteLimit = max(0, byteLimit)
    }

    /// The bytes of pixels that the pool holds.
    public var byteCount: Int { self.state.withLock { $0.byteCount } }

    /// The frames that the pool holds.
    public var frameCount: Int { self.state.withLock { $0.entries.count } }

    /// Drops every frame.
    public func removeAll() {
        // What is dropped is freed outside the lock.
        let dropped = self.state.withLock { state -> [Key: Entry] in
            defer { state = State() }
            return state.entries
        }
        withExtendedLifetime(dropped) {}
    }

    func image(for key: Key) -> Image? {
        self.state.withLock { state in
            state.clock += 1
            state.entries[key]?.lastUse = state.clock
            return state.entries[key]?.image
        }
    }

    func insert(_ image: Image, for key: Key) {
        let size = image.pixels.byteCount
        guard size <= self.byteLimit else { return }
        let dropped = self.state.withLock { state -> [Entry] in
            var dropped: [Entry] = []
            if let old = state.entries.removeValue(forKey: key) {
                state.byteCount -= old.image.pixels.byteCount
                dropped.append(old)
            }
            while state.byteCount + size > self.byteLimit,
                let oldest = state.entries.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                state.byteCount -= oldest.value.image.pixels.byteCount
                dropped.append(oldest.value)
                state.entries[oldest.key] = nil
            }
            state.clock += 1
            state.entries[key] = Entry(image: image, lastUse: state.clock)
            state.byteCount += size
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    /// Drops the frames of a source that goes away.
    func removeAll(of source: ObjectIdentifier) {
        let dropped = self.state.withLock { state -> [Entry] in
            let keys = state.entries.keys.filter { $0.source == source }
            return keys.compactMap { key in
                let entry = state.entries.removeValue(forKey: key)
                state.byteCount -= entry?.image.pixels.byteCount ?? 0
                return entry
            }
        }
        withExtendedLifetime(dropped) {}
    }
}
