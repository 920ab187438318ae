import FoundationEssentials
import TintypeImage

/// What the RIFF chunks of a WebP say, pixels left out.
///
/// Source: RFC 9649, section 2.
struct WebPHeader {
    private(set) var exif: Data?
    private(set) var colorProfile: Data?
    /// How the frames are shown; a still picture's otherwise.
    private(set) var animation = AnimationTiming()
    /// Whether the bytes go as far as the file says.
    let isComplete: Bool

    /// Reads the chunk list of `data`; a broken list ends it early, the decoder finds out.
    init(_ data: Data) {
        self.isComplete = data.uint32(at: 4, .little).map { $0 + 8 <= data.count } ?? false
        var timing = AnimationTiming()
        var isAnimated = false
        var offset = 12
        while let size = data.uint32(at: offset + 4, .little), size <= data.count {
            let body = offset + 8
            if data.has("ICCP", at: offset) {
                self.colorProfile = data.slice(from: body, to: body + size)
            } else if data.has("EXIF", at: offset) {
                self.exif = data.slice(from: body, to: body + size)
            } else if data.has("ANIM", at: offset) {
                isAnimated = true
                timing.loopCount = data.uint16(at: body + 4, .little) ?? 1
            } else if data.has("ANMF", at: offset), let duration = data.uint24LittleEndian(at: body + 12) {
                timing.appendFrame(milliseconds: duration)
            }
            // Chunks are padded to an even size.
            offset = body + size + size % 2
        }
        if isAnimated, !timing.durations.isEmpty { self.animation = timing }
    }
}
