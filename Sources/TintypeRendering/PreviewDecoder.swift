// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import TintypeCoding
package import TintypeConcurrency
package import TintypeImage

/// Makes previews of one image while its bytes arrive, on the thread of one decode lane.
package actor PreviewDecoder {
    private nonisolated let lane: DecodeLane
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.lane.unownedExecutor }

    private let registry: CoderRegistry
    private let coder: (any ImageCoder)?
    private var options: DecodeOptions
    private let findRendering: @Sendable (ImageHeader) throws -> StoredRendering?
    /// Counts the work on previews that their decoder does not count.
    private var work: DecodeWork?
    /// The work of all previews so far.
    ///
    /// Bytes that arrive slowly must not lead to any number of large previews.
    private var previewUnits = 0
    /// The work of the last one.
    private var lastPreviewUnits = 0
    private var decoder: (any IncrementalDecoder)?
    /// The work of a blur, about.
    ///
    /// The work of a program's own transforms is not known.
    private static let transformUnitsPerPixel = 16

    /// The layouts of previews before the resize and as they are shown.
    private var layouts: (decoded: PixelLayout, shown: PixelLayout)?
    private var rendering: StoredRendering?
    private var codingByteCount = 0
    private var fedByteCount = 0
    /// The memory that previews may take; `nil` for any.
    private let gate: WeightedGate?
    /// The memory that this decoder has taken.
    ///
    /// It takes more if a late header says so.
    private var places: [WeightedGate.Place] = []
    /// The bytes before the size was known.
    private var start = Data()
    /// Whether no preview can come, because the coder makes none or the bytes are damaged.
    ///
    /// The load itself reports the error.
    private var isOver = false

    /// The bytes that must hold the header.
    ///
    /// An image with longer metadata has no previews.
    private static let maximumStartByteCount = 1 << 20
    /// The bytes that are decoded between two checks of the work.
    private static let bytesAtOnce = 32 << 10

    /// Creates a decoder that has seen no bytes.
    ///
    /// - Parameters:
    ///   - registry: The coders to ask.
    ///   - coder: A coder to use instead of asking the registry.
    ///   - options: The options of the decode. The work of the bytes and of all previews stays within the limit, and within one
    ///     and a half times the work of one decode, which bounds the number of previews.
    ///   - lanes: The lanes, one of which does the work.
    ///   - gate: Weighs the memory of previews. If it has no room, the image has no previews.
    ///   - rendering: Returns the rendering of previews when the header is known; `nil` leaves them as they are.
    package init(
        registry: CoderRegistry,
        coder: (any ImageCoder)? = nil,
        options: DecodeOptions = DecodeOptions(),
        lanes: DecodeLanes,
        gate: WeightedGate? = nil,
        rendering: @escaping @Sendable (ImageHeader) throws -> StoredRendering? = { _ in nil }
    ) {
        self.registry = registry
        self.coder = coder
        self.findRendering = rendering
        self.gate = gate
        self.options = options
        self.lane = lanes.leastLoaded
    }

    /// Decodes bytes, and returns the image as far as it is known, if there is something new to show.
    ///
    /// It is upright and marked as a preview.
    package func append(_ bytes: Data) -> Image? {
        guard !self.isOver, !Task.isCancelled else { return nil }
        do {
            return try self.preview(after: bytes)
        } catch {
            self.end()
            return nil
        }
    }

    /// Ends the previews, and frees their memory.
    private func end() {
        self.isOver = true
        self.decoder = nil
        self.start = Data()
        self.places = []
    }

    private func preview(after bytes: Data) throws -> Image? {
        if let decoder = self.decoder {
            try self.feed(bytes, to: decoder)
        } else {
            self.start.append(bytes)
            // The first bytes hold every signature, except those at the end of a file.
            guard self.start.count >= 32 else { return nil }
            guard try self.open() else { return nil }
            guard let decoder = self.decoder else {
                self.end()
                return nil
            }
            let start = self.start
            self.start = Data()
            try self.feed(start, to: decoder)
        }
        guard let decoder = self.decoder, let header = decoder.header else { return nil }
        guard try self.isAffordable(decoder, header) else { return nil }
        let before = self.unitsDone(by: decoder)
        guard let preview = try decoder.preview() else { return nil }
        let work = self.work ?? DecodeWork(self.options.limits, format: header.format)
        self.work = work
        try work.count(self.finishingUnits(header).saturatingAdded(to: self.uncountedUnits(decoder)))
        self.lastPreviewUnits = self.unitsDone(by: decoder) - before
        self.previewUnits += self.lastPreviewUnits
        let finished =
            try self.rendering?.render(preview, header: header, options: self.options)
            ?? header.finish(preview, options: self.options)
        return finished.markedAsPreview()
    }

    /// Feeds a decoder while all work on the image stays within its limit.
    private func feed(_ bytes: Data, to decoder: any IncrementalDecoder) throws {
        for start in stride(from: 0, to: bytes.count, by: Self.bytesAtOnce) {
            let piece = bytes.slice(from: start, to: start + Self.bytesAtOnce)
            self.fedByteCount += piece.count
            try decoder.append(piece)
            // Fails if it is too much.
            try DecodeWork(self.options.limits, format: decoder.header?.format).require(self.unitsDone(by: decoder))
        }
    }

    /// The work of the bytes, of the previews, and of finishing them.
    private func unitsDone(by decoder: any IncrementalDecoder) -> Int {
        // A decoder that does not count probably does little.
        let counted = decoder.workDone
        let units = counted > 0 ? counted : self.fedByteCount.saturatingMultiplied(by: DecodeWork.unitsPerByte)
        return units.saturatingAdded(to: self.work?.spent ?? 0)
    }

    /// Whether the image can afford one more preview, in work and in memory.
    ///
    /// All work before the last byte must stay within one and a half times that of one decode. The bytes alone take as much as a
    /// decode, except its output. This leaves half a decode, and the output and the finishing of one image, for previews. A
    /// tenth of that half is for the overhead of pieces.
    private func isAffordable(_ decoder: any IncrementalDecoder, _ header: ImageHeader) throws -> Bool {
        let finishing = self.finishingUnits(header)
        let next = decoder.previewUnits.saturatingAdded(to: finishing).saturatingAdded(to: self.uncountedUnits(decoder))
        let coming = max(self.lastPreviewUnits, next)
        let done = self.unitsDone(by: decoder)
        try DecodeWork(self.options.limits, format: header.format).require(done.saturatingAdded(to: coming))
        try self.takePlace(for: header)
        // Each pixel takes at least one unit.
        let pixels = self.layouts?.decoded.pixelCount ?? 0
        let decode = max(pixels, (done - self.previewUnits).saturatingAdded(to: decoder.outputUnits))
        let share = (decode / 20 * 9).saturatingAdded(to: decoder.outputUnits).saturatingAdded(to: finishing / 2 * 3)
        return self.previewUnits.saturatingAdded(to: coming) <= share
    }

    /// Takes the memory that a header asks for, in addition to the memory taken before.
    private func takePlace(for header: ImageHeader) throws {
        guard let gate, let (decoded, shown) = self.layouts else { return }
        let image = shown.byteCount
        let besides: Int
        if let rendering {
            let finishing = rendering.finishingByteCount(of: shown, header: header, options: self.options)
            besides = max(image.saturatingAdded(to: rendering.byteCount(decoded)), finishing)
        } else {
            // The coder's own count includes the preview.
            let finishing = header.finishingByteCount(of: image, as: shown.format, options: self.options)
            besides = finishing - min(image, finishing)
        }
        let weight = self.codingByteCount.saturatingAdded(to: besides)
        let missing = weight - self.places.reduce(0) { $0 + $1.weight }
        guard missing > 0 else { return }
        guard let place = gate.placeIfFree(for: missing) else { throw NoRoom() }
        self.places.append(place)
    }

    /// The gate has no memory for previews.
    private struct NoRoom: Error {}

    /// The work of copying a preview, if its decoder does not count it.
    private func uncountedUnits(_ decoder: any IncrementalDecoder) -> Int {
        decoder.workDone > 0 ? 0 : (self.layouts?.decoded.pixelCount ?? 0) / 2
    }

    /// The work of finishing a preview, or the image: resize, conversion, turn and transforms.
    private func finishingUnits(_ header: ImageHeader) -> Int {
        guard let (decoded, shown) = self.layouts else { return 0 }
        let pixels = shown.pixelCount
        var units = self.rendering == nil ? 0 : decoded.pixelCount
        if (self.rendering?.orientation ?? header.orientation) != .up { units = units.saturatingAdded(to: pixels) }
        if self.rendering?.transform != nil {
            units = units.saturatingAdded(to: pixels.saturatingMultiplied(by: Self.transformUnitsPerPixel))
        }
        if header.isConverted(self.options) {
            units = units.saturatingAdded(to: pixels.saturatingMultiplied(by: ColorConverter.unitsPerPixel))
        }
        return units
    }

    /// Reads the header, and makes a decoder if the coder has one and there is memory for it.
    ///
    /// - Returns: `false` if more bytes are needed.
    private func open() throws -> Bool {
        let limits = self.options.limits
        do {
            let coder = try self.coder ?? self.registry.coder(decoding: self.start)
            let encoded = try coder.open(self.start, limits: limits)
            let header = encoded.header
            try limits.check(header)
            self.rendering = try self.findRendering(header)
            if let rendering { self.options.sufficientSize = rendering.sufficientSize }
            let decoded = try encoded.decodedLayout(options: self.options)
            let shown = try self.rendering.map {
                try PixelLayout(format: decoded.format, width: $0.size.width, height: $0.size.height)
            }
            self.layouts = (decoded, shown ?? decoded)
            self.codingByteCount = encoded.byteCount(for: .incremental, options: self.options)
            try self.takePlace(for: header)
            self.decoder = try coder.makeIncrementalDecoder(for: header.format, options: self.options)
            return true
        } catch let error as CodingError where error.code == .truncated {
            guard self.start.count <= Self.maximumStartByteCount else { throw error }
            return false
        }
    }
}
