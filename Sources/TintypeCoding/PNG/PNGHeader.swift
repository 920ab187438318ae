import FoundationEssentials
import TintypeImage

/// What the chunks of a PNG say, pixels left out.
///
/// Source: W3C PNG, third edition, sections 5 and 11; it covers APNG.
struct PNGHeader {
    /// The colour types of an `IHDR` chunk.
    enum ColorType: UInt8 {
        case gray = 0
        case rgb = 2
        case palette = 3
        case grayAlpha = 4
        case rgba = 6
    }

    private(set) var width = 0
    private(set) var height = 0
    private(set) var bitDepth = 8
    private(set) var colorType = ColorType.gray
    private(set) var hasTransparency = false
    private(set) var exif: Data?
    /// How the frames of an APNG are shown; a still picture's otherwise.
    private(set) var animation = AnimationTiming()

    /// Reads the chunk list of `data`; a broken list ends it early, the decoder finds out.
    init(_ data: Data) throws(CodingError) {
        try self.readImageHeader(data)
        var timing = AnimationTiming()
        var loopCount: Int?
        var offset = 33
        while let length = data.uint32(at: offset), offset + 12 + length <= data.count {
            let body = offset + 8
            if data.has("acTL", at: offset + 4) {
                loopCount = data.uint32(at: body + 4)
            } else if data.has("fcTL", at: offset + 4), loopCount != nil {
                guard let numerator = data.uint16(at: body + 20), let denominator = data.uint16(at: body + 22) else {
                    break
                }
                timing.appendFrame(milliseconds: numerator * 1_000 / (denominator == 0 ? 100 : denominator))
            } else if data.has("tRNS", at: offset + 4) {
                self.hasTransparency = true
            } else if data.has("eXIf", at: offset + 4) {
                self.exif = data.slice(from: body, to: body + length)
            } else if data.has("IEND", at: offset + 4) {
                break
            }
            offset += 12 + length
        }
        if let loopCount, timing.frameCount > 1 {
            timing.loopCount = loopCount
            self.animation = timing
        }
    }

    var hasAlpha: Bool {
        self.hasTransparency || self.colorType == .grayAlpha || self.colorType == .rgba
    }

    private mutating func readImageHeader(_ data: Data) throws(CodingError) {
        guard data.has("IHDR", at: 12) else {
            throw data.count < 33 ? .truncated(.png) : .corrupt(.png, "it does not begin with a header chunk")
        }
        guard
            let width = data.uint32(at: 16), let height = data.uint32(at: 20), let depth = data.byte(at: 24),
            let type = data.byte(at: 25), data.count >= 33
        else { throw .truncated(.png) }
        guard width > 0, height > 0, width <= Int(Int32.max), height <= Int(Int32.max) else {
            throw .corrupt(.png, "it declares an impossible size")
        }
        guard let colorType = ColorType(rawValue: type) else { throw .corrupt(.png, "its colour type is unknown") }
        self.width = width
        self.height = height
        self.bitDepth = Int(depth)
        self.colorType = colorType
    }
}
