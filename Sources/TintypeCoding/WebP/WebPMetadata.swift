import CWebP
import FoundationEssentials
import TintypeImage

/// Writes blocks of metadata around coded pictures.
///
/// Source: RFC 9649, sections 2.7.1.4 and 2.7.1.5; the flags of VP8X are set by libwebp's muxer.
enum WebPMetadata {
    /// The file with the blocks that there are.
    static func add(_ metadata: EncodeOptions.Metadata, to file: Data) throws(CodingError) -> Data {
        let blocks = [("ICCP", metadata.colorProfile), ("EXIF", metadata.exif), ("XMP ", metadata.xmp)]
            .compactMap { name, block in block.map { (name, $0) } }
        guard !blocks.isEmpty else { return file }
        guard let mux = Self.mux(of: file) else { throw .outOfMemory(.webp) }
        defer { WebPMuxDelete(mux) }
        for (name, block) in blocks {
            let isSet = Self.withWebPData(block) { WebPMuxSetChunk(mux, name, $0, 1) == WEBP_MUX_OK }
            guard isSet else { throw .webpEncoding("its \(name) block can't be stored") }
        }
        var assembled = WebPData()
        guard WebPMuxAssemble(mux, &assembled) == WEBP_MUX_OK, let bytes = assembled.bytes else {
            throw .webpEncoding("its blocks of metadata can't be stored")
        }
        return Data(webp: bytes, count: assembled.size)
    }

    private static func mux(of file: Data) -> OpaquePointer? {
        self.withWebPData(file) { WebPMuxCreate($0, 1) }
    }

    private static func withWebPData<Result>(_ data: Data, _ body: (UnsafePointer<WebPData>) -> Result) -> Result {
        data.withUnsafeBytes { bytes in
            // An empty block has no address, which libwebp takes for a mistake.
            withUnsafeBytes(of: UInt8(0)) { empty in
                let start = bytes.baseAddress ?? empty.baseAddress
                var lent = WebPData(bytes: start?.assumingMemoryBound(to: UInt8.self), size: bytes.count)
                return body(&lent)
            }
        }
    }
}

extension Data {
    /// Takes over memory that libwebp allocated.
    init(webp bytes: UnsafePointer<UInt8>, count: Int) {
        self.init(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes),
            count: count,
            deallocator: .custom { pointer, _ in WebPFree(pointer) }
        )
    }
}
