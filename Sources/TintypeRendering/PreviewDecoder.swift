public import FoundationEssentials
public import TintypeCoding
public import TintypeConcurrency
public import TintypeImage

/// Makes previews of one picture while its bytes arrive, on the thread of one decode lane.
public actor PreviewDecoder {
    private nonisolated let lane: DecodeLane
    public nonisolated var unownedExecutor: UnownedSerialExecutor { self.lane.unownedExecutor }

    private let registry: CoderRegistry
    private let coder: (any ImageCoder)?
    private var options: DecodeOptions
    private let findRendering: @Sendable (ImageHeader) throws -> StoredRendering?
    /// Counts what is done to previews besides what their decoder counts.
    private var work: DecodeWork?
    /// The work of all previews so far: bytes that come slowly must not make any number of large ones.
    private var previewUnits = 0
    /// The work of the last one.
    private var lastPreviewUnits = 0
    private var decoder: (any IncrementalDecoder)?
    /// About what a blur takes: how long a program's own transforms take is not known.
    private static let transformUnitsPerPixel = 16

    /// How previews lie in memory before they are resized and as they are shown, and what decoding takes with them.
    private var layouts: (decoded: PixelLayout, shown: PixelLayout)?
    private var rendering: StoredRendering?
    private var codingByteCount = 0
    private var fedByteCount = 0
    /// The memory that previews may take; `nil` for any.
    private let gate: WeightedGate?
    /// What this one takes of it: more where a header that comes late says so.
    private var places: [WeightedGate.Place] = []
    /// The bytes before the size was known.
    private var start = Data()
    /// Whether no preview can come: no coder makes any, or the bytes are damaged.
    ///
    /// The load itself will say what is wrong.
    private var isOver = false

    /// The bytes in which a header must be found: pictures whose metadata is longer are shown when they are there.
    private static let maximumStartByteCount = 1 << 20
    /// The bytes that are decoded between two looks at the work that was done.
    private static let bytesAtOnce = 32 << 10

    /// Creates a decoder that has seen no bytes.
    ///
    /// - Parameters:
    ///   - registry: The coders to ask.
    ///   - coder: A coder to use instead of asking the registry.
    ///   - options: How previews are decoded; their work, and that of the bytes, stays within the limit too. It is at most one
    ///     and a half times that of one decode: there are as many previews as it suffices for.
    ///   - lanes: One of them does the work.
    ///   - gate: Weighs the memory of previews: where there is no room for those of this picture, it has none.
    ///   - rendering: What is made of previews, once the header is known; `nil` leaves them as they are.
    public init(
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

    /// Takes the bytes that arrived; the picture as far as it is known, upright and marked as a preview, when there
    /// is something new to show.
    public func append(_ bytes: Data) -> Image? {
        guard !self.isOver, !Task.isCancelled else { return nil }
        do {
            return try self.preview(after: bytes)
        } catch {
            self.end()
            return nil
        }
    }

    /// No preview comes any more: what is kept for them is freed.
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
            // Every signature but those at the end of a file is in its first bytes.
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

    /// Feeds a decoder, as long as all that is done for the picture stays within its work.
    private func feed(_ bytes: Data, to decoder: any IncrementalDecoder) throws {
        for start in stride(from: 0, to: bytes.count, by: Self.bytesAtOnce) {
            let piece = bytes.slice(from: start, to: start + Self.bytesAtOnce)
            self.fedByteCount += piece.count
            try decoder.append(piece)
            // Throws where it is too much.
            try DecodeWork(self.options.limits, format: decoder.header?.format).require(self.unitsDone(by: decoder))
        }
    }

    /// The work of the bytes, of previews, and of finishing those.
    private func unitsDone(by decoder: any IncrementalDecoder) -> Int {
        // One that does not count is taken to do little.
        let counted = decoder.workDone
        let units = counted > 0 ? counted : self.fedByteCount.saturatingMultiplied(by: DecodeWork.unitsPerByte)
        return units.saturatingAdded(to: self.work?.spent ?? 0)
    }

    /// Whether one more preview may be made: with it all that is done for the picture before its last byte takes no more
    /// than one and a half times the work of one decode, as far as that is known, and the memory that was asked for.
    ///
    /// The bytes themselves take what a decode takes, but for what that does to give out what it has put together. So half
    /// of a decode is left for previews, that, and how one picture is finished; a tenth of it is for what pieces take besides.
    private func isAffordable(_ decoder: any IncrementalDecoder, _ header: ImageHeader) throws -> Bool {
        let finishing = self.finishingUnits(header)
        let next = decoder.previewUnits.saturatingAdded(to: finishing).saturatingAdded(to: self.uncountedUnits(decoder))
        let coming = max(self.lastPreviewUnits, next)
        let done = self.unitsDone(by: decoder)
        try DecodeWork(self.options.limits, format: header.format).require(done.saturatingAdded(to: coming))
        try self.takePlace(for: header)
        // Each pixel takes a unit at least.
        let pixels = self.layouts?.decoded.pixelCount ?? 0
        let decode = max(pixels, (done - self.previewUnits).saturatingAdded(to: decoder.outputUnits))
        let share = (decode / 20 * 9).saturatingAdded(to: decoder.outputUnits).saturatingAdded(to: finishing / 2 * 3)
        return self.previewUnits.saturatingAdded(to: coming) <= share
    }

    /// Takes more memory for a picture of which more is known now.
    private func takePlace(for header: ImageHeader) throws {
        guard let gate, let (decoded, shown) = self.layouts else { return }
        let picture = shown.byteCount
        let besides: Int
        if let rendering {
            let finishing = rendering.finishingByteCount(of: shown, header: header, options: self.options)
            besides = max(picture.saturatingAdded(to: rendering.byteCount(decoded)), finishing)
        } else {
            // The preview is one of the coder's pictures.
            let finishing = header.finishingByteCount(of: picture, as: shown.format, options: self.options)
            besides = finishing - min(picture, finishing)
        }
        let weight = self.codingByteCount.saturatingAdded(to: besides)
        let missing = weight - self.places.reduce(0) { $0 + $1.weight }
        guard missing > 0 else { return }
        guard let place = gate.placeIfFree(for: missing) else { throw NoRoom() }
        self.places.append(place)
    }

    /// There is no memory for previews.
    private struct NoRoom: Error {}

    /// The work of a preview that its decoder does not count: that of a copy.
    private func uncountedUnits(_ decoder: any IncrementalDecoder) -> Int {
        decoder.workDone > 0 ? 0 : (self.layouts?.decoded.pixelCount ?? 0) / 2
    }

    /// The work of finishing a preview, or the picture: what resizes it, its conversion and its turn, and its transforms.
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

    /// Reads the header, and makes a decoder where the coder has one and there is memory for it.
    ///
    /// - Returns: `false` while too few bytes are there.
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
