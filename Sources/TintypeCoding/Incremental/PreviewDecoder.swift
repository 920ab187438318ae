public import FoundationEssentials
import TintypeConcurrency
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
    /// The bytes before the format was known.
    private var start = Data()
    /// Whether no preview can come: no coder makes any, or the bytes are damaged.
    ///
    /// The load itself will say what is wrong.
    private var isOver = false

    /// Creates a decoder that has seen no bytes.
    public init(registry: CoderRegistry, options: DecodeOptions = DecodeOptions(), lanes: DecodeLanes) {
        self.registry = registry
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
            self.isOver = true
            self.decoder = nil
            return nil
        }
    }

    private func preview(after bytes: Data) throws -> Image? {
        if let decoder = self.decoder {
            try decoder.append(bytes)
        } else {
            self.start.append(bytes)
            // Every signature but those at the end of a file is in its first bytes.
            guard self.start.count >= 32 else { return nil }
            guard let decoder = try self.makeDecoder() else {
                self.isOver = true
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

    private func makeDecoder() throws -> (any IncrementalDecoder)? {
        guard let format = ImageFormat(sniffing: self.start) else { return nil }
        return try self.registry.coder(decoding: self.start).makeIncrementalDecoder(for: format, options: self.options)
    }
}
