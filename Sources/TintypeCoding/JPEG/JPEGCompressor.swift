import CTurboJPEG
import FoundationEssentials
import TintypeImage

/// One TurboJPEG compressor; freed with the object.
final class JPEGCompressor {
    /// The longest side that the format can store.
    private static let maximumSide = 65_500
    private let handle: tjhandle

    init() throws(CodingError) {
        guard let handle = tjInitCompress() else { throw .outOfMemory(.jpeg) }
        self.handle = handle
    }

    deinit {
        tjDestroy(self.handle)
    }

    /// Encodes upright pixels; alpha is laid over the background.
    func compress(_ pixels: PixelBuffer, options: EncodeOptions) throws -> Data {
        guard max(pixels.width, pixels.height) <= Self.maximumSide else {
            throw CodingError(
                code: .encodingFailed,
                message:
                    "A JPEG has at most \(Self.maximumSide) pixels a side; make the picture smaller or choose PNG.",
                format: .jpeg
            )
        }
        let opaque = try pixels.flattened(over: options.background)
        let isGray = opaque.format == .gray8
        var bytes: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        let code = opaque.withUnsafeBytes { source in
            tjCompress2(
                self.handle,
                source.baseAddress?.assumingMemoryBound(to: UInt8.self),
                CInt(opaque.width),
                CInt(opaque.layout.planes[0].bytesPerRow),
                CInt(opaque.height),
                CInt(isGray ? TJPF_GRAY.rawValue : TJPF_RGB.rawValue),
                &bytes,
                &count,
                CInt(isGray ? TJSAMP_GRAY.rawValue : TJSAMP_420.rawValue),
                CInt(min(max(options.quality, 1), 100)),
                TJFLAG_ACCURATEDCT
            )
        }
        guard code == 0, let bytes else {
            tjFree(bytes)
            throw CodingError(
                code: .encodingFailed,
                message: "The picture can't be written as JPEG: \(String(cString: tjGetErrorStr2(self.handle))).",
                format: .jpeg
            )
        }
        return Data(
            bytesNoCopy: bytes,
            count: Int(count),
            deallocator: .custom { pointer, _ in
                tjFree(pointer.assumingMemoryBound(to: UInt8.self))
            }
        )
    }
}
