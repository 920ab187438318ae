// SPDX-License-Identifier: Apache-2.0

import TintypeCoding
import TintypeConcurrency
import TintypeImage

/// Makes the frames of one animation for all its readers, on the thread of one decode lane.
///
/// It keeps a canvas for each reader, at most four. So readers at different places do not make each other start again.
actor FrameDecoder {
    private static let maximumCanvasCount = 4

    private nonisolated let lane: DecodeLane
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.lane.unownedExecutor }

    private nonisolated let name: String?
    private nonisolated let pool: FramePool
    private nonisolated let decoder: ImageDecoder
    private nonisolated let options: DecodeOptions
    private nonisolated let rendering: StoredRendering?
    private nonisolated let readerCount = Locked(0)
    /// The canvases, the last used one at the end.
    private var compositors: [FrameCompositor] = []

    init(
        _ decoder: ImageDecoder,
        options: DecodeOptions,
        rendering: StoredRendering?,
        lane: DecodeLane,
        pool: FramePool,
        name: String?
    ) {
        self.decoder = decoder
        self.options = options
        self.rendering = rendering
        self.lane = lane
        self.pool = pool
        self.name = name
    }

    deinit {
        if let name { self.pool.forgetDecoder(named: name) } else { self.pool.removeAll(of: self.source) }
    }

    nonisolated func addReader() { self.readerCount.withLock { $0 += 1 } }
    nonisolated func removeReader() { self.readerCount.withLock { $0 -= 1 } }

    private nonisolated var source: FramePool.Source { self.name.map { .named($0) } ?? .object(ObjectIdentifier(self)) }

    nonisolated func key(_ index: Int) -> FramePool.Key {
        FramePool.Key(source: self.source, index: index)
    }

    /// The most bytes of memory that a frame takes at once while it is made.
    nonisolated var byteCount: Int {
        let kind: DecodeKind = self.decoder.header.animation.frameCount > 1 ? .frame : .image
        guard let rendering, let stored = try? self.decoder.encoded.decodedLayout(options: self.options) else {
            return self.decoder.byteCount(for: kind, options: self.options)
        }
        // The resize refuses a frame that no memory holds.
        let size = rendering.size
        guard let target = try? PixelLayout(format: stored.format, width: size.width, height: size.height) else {
            return .max
        }
        let finishing = rendering.finishingByteCount(of: target, header: self.decoder.header, options: self.options)
        let resized = max(target.byteCount.saturatingAdded(to: rendering.byteCount(stored)), finishing)
        return self.decoder.encoded.byteCount(for: kind, options: self.options).saturatingAdded(to: resized)
    }

    /// Returns frame `index`, from the pool if it is there by now.
    func frame(at index: Int) throws -> Image {
        try Task.checkCancellation()
        if let image = self.pool.image(for: self.key(index)) { return image }
        let frameCount = self.decoder.header.animation.frameCount
        guard (0..<frameCount).contains(index) else {
            throw CodingError.noFrame(index, of: frameCount, self.decoder.header.format)
        }
        let stored = try self.composited(index)
        let image =
            try self.rendering?.render(stored, header: self.decoder.header, options: self.options)
            ?? self.decoder.finish(stored, options: self.options)
        self.pool.insert(image, for: self.key(index))
        return image
    }

    private func composited(_ index: Int) throws -> Image {
        guard let compositor = try self.compositor(for: index) else {
            var options = self.options
            options.frame = index
            return try self.decoder.decodeStored(options: options).image
        }
        return Image(
            pixels: try compositor.frame(at: index),
            orientation: self.decoder.header.orientation,
            sourceFormat: self.decoder.header.format
        )
    }

    /// Returns the canvas that is the fewest frames behind, or a new one if there is a reader for it; `nil` for a still image.
    private func compositor(for index: Int) throws -> FrameCompositor? {
        let limit = max(1, min(self.readerCount.withLock { $0 }, Self.maximumCanvasCount))
        if self.compositors.count > limit { self.compositors.removeFirst(self.compositors.count - limit) }
        let nearest = self.compositors.indices.filter { self.compositors[$0].leads(to: index) }
            .max { self.compositors[$0].shownIndex ?? 0 < self.compositors[$1].shownIndex ?? 0 }
        if nearest == nil, self.compositors.count < limit {
            guard let compositor = try self.decoder.makeCompositor(options: self.options) else { return nil }
            self.compositors.append(compositor)
            return compositor
        }
        let compositor = self.compositors.remove(at: nearest ?? 0)
        self.compositors.append(compositor)
        return compositor
    }
}
