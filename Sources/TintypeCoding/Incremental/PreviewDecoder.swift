public import FoundationEssentials
public import TintypeConcurrency
public import TintypeImage

/// Makes previews of one picture while its bytes arrive, on the thread of one decode lane.
public actor PreviewDecoder {
    private nonisolated let lane: DecodeLane
    public nonisolated var unownedExecutor: UnownedSerialExecutor { self.lane.unownedExecutor }

    private let registry: CoderRegistry
    private let options: DecodeOptions
    /// Counts the previews themselves: bytes that come slowly must not make any number of large ones.
    private var work: DecodeWork?
    private var decoder: (any IncrementalDecoder)?
    /// The memory that previews may take; `nil` for any.
    private let gate: WeightedGate?
    /// What this one takes of it.
    private var place: WeightedGate.Place?
    /// The bytes before the size was known.
    private var start = Data()
    /// Whether no preview can come: no coder makes any, or the bytes are damaged.
    ///
    /// The load itself will say what is wrong.
    private var isOver = false

    /// The bytes in which a header must be found: pictures whose metadata is longer are shown when they are there.
    private static let maximumStartByteCount = 1 << 20

    /// Creates a decoder that has seen no bytes.
    ///
    /// - Parameters:
    ///   - registry: The coders to ask.
    ///   - options: How previews are decoded; the work of all of them together stays within the limit too.
    ///   - lanes: One of them does the work.
    ///   - gate: Weighs the memory of previews: where there is no room for those of this picture, it has none.
    public init(
        registry: CoderRegistry,
        options: DecodeOptions = DecodeOptions(),
        lanes: DecodeLanes,
        gate: WeightedGate? = nil
    ) {
        self.registry = registry
        self.gate = gate
        self.options = options
        self.lane = lanes.leastLoaded
    }

    /// Takes the bytes that arrived; the picture as far as it is known, upright, when there is
    /// something new to show.
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
        self.place = nil
    }

    private func preview(after bytes: Data) throws -> Image? {
        if let decoder = self.decoder {
            try decoder.append(bytes)
        } else {
            self.start.append(bytes)
            // Every signature but those at the end of a file is in its first bytes.
            guard self.start.count >= 32 else { return nil }
            guard let header = try self.header() else { return nil }
            guard let decoder = try self.makeDecoder(header) else {
                self.end()
                return nil
            }
            try decoder.append(self.start)
            self.start = Data()
            self.decoder = decoder
        }
        guard let decoder = self.decoder, let header = decoder.header else { return nil }
        guard let preview = try decoder.preview() else { return nil }
        try self.count(header)
        var image = preview
        if let profile = decoder.header?.colorProfile, case .convert(let intent) = self.options.color {
            let pixels = try ColorConverter.shared.convert(image.pixels, from: profile, intent: intent)
            image = image.replacingPixels(pixels, orientation: image.orientation)
        }
        return try image.upright()
    }

    /// Counts a preview: a copy, its conversion and its turn.
    private func count(_ header: ImageHeader) throws {
        let work = self.work ?? DecodeWork(self.options.limits, format: header.format)
        self.work = work
        let pixels = header.pixelWidth.saturatingMultiplied(by: header.pixelHeight)
        var units = pixels / 2
        if header.orientation != .up { units = units.saturatingAdded(to: pixels) }
        if header.colorProfile != nil {
            units = units.saturatingAdded(to: pixels.saturatingMultiplied(by: ColorConverter.unitsPerPixel))
        }
        try work.count(units)
    }

    /// What the bytes say about their picture, within the limits; `nil` while too few are there.
    private func header() throws -> ImageHeader? {
        let limits = self.options.limits
        do {
            let header = try self.registry.coder(decoding: self.start).header(of: self.start, limits: limits)
            try limits.check(header)
            return header
        } catch let error as CodingError where error.code == .truncated {
            guard self.start.count <= Self.maximumStartByteCount else { throw error }
            return nil
        }
    }

    /// A decoder, where a coder has one and there is memory for it.
    private func makeDecoder(_ header: ImageHeader) throws -> (any IncrementalDecoder)? {
        let coder = try self.registry.coder(decoding: self.start)
        if let gate {
            let weight = coder.byteCount(for: .incremental, header: header, options: self.options)
            guard let place = gate.placeIfFree(for: weight) else { return nil }
            self.place = place
        }
        return try coder.makeIncrementalDecoder(for: header.format, options: self.options)
    }
}
