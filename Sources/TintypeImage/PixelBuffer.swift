import Glibc

/// The pixels of a picture: immutable, reference-counted, in one aligned block.
///
/// A class, so that copying a picture is free and a cache can hold it weakly.
public final class PixelBuffer: Sendable {
    /// Where the planes lie.
    public let layout: PixelLayout
    /// Written only while `init` runs, before any other thread can know of it; read-only
    /// from then on until `deinit`.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer
    /// What is given back in the end; the pixels begin at its first aligned byte.
    ///
    /// Never read or written.
    private nonisolated(unsafe) let block: UnsafeMutableRawPointer

    /// How the samples lie in memory.
    public var format: PixelFormat { self.layout.format }
    /// The width in pixels.
    public var width: Int { self.layout.width }
    /// The height in pixels.
    public var height: Int { self.layout.height }
    /// The bytes that the pixels occupy, padding included: the cost of the buffer in a cache.
    public var byteCount: Int { self.layout.byteCount }

    /// Allocates a buffer and lets `fill` write its pixels.
    ///
    /// - Parameters:
    ///   - layout: The size and format of the pixels.
    ///   - fill: Writes all planes. The bytes are zero before it runs.
    /// - Throws: `ImageError.Code.outOfMemory`, or what `fill` throws.
    public convenience init(
        _ layout: PixelLayout,
        filling fill: (inout MutableRawSpan) throws -> Void
    ) throws {
        try self.init(
            layout,
            fillingUnsafely: { bytes in
                bytes.initializeMemory(as: UInt8.self, repeating: 0)
                var span = MutableRawSpan(_unsafeBytes: bytes)
                try fill(&span)
            }
        )
    }

    /// Allocates a buffer and lets `fill` write its pixels, without zeroing them first.
    ///
    /// `fill` must write every byte of every row that is not padding; padding is zeroed after it. It is
    /// lent `extraByteCount` bytes behind the last row, for decoders that work in place; they stay
    /// allocated.
    package init(
        _ layout: PixelLayout,
        extraByteCount: Int = 0,
        fillingUnsafely fill: (UnsafeMutableRawBufferPointer) throws -> Void
    ) throws {
        let byteCount = layout.byteCount + extraByteCount
        guard let block = Self.allocateBlock(byteCount) else {
            throw ImageError(
                code: .outOfMemory,
                message:
                    "There is no memory for \(byteCount) bytes of pixels; lower the limits or the number of lanes."
            )
        }
        let base = block.alignedUp(toMultipleOf: PixelLayout.alignment)
        do {
            let bytes = UnsafeMutableRawBufferPointer(start: base, count: byteCount)
            try fill(bytes)
            layout.clearPadding(of: UnsafeMutableRawBufferPointer(rebasing: bytes[..<layout.byteCount]))
        } catch {
            free(block)
            throw error
        }
        self.layout = layout
        self.base = base
        self.block = block
    }

    deinit {
        free(self.block)
    }

    /// Memory that holds `byteCount` bytes from its first aligned byte on, or `nil`.
    ///
    /// Given back with `free`. Small blocks are not asked for as aligned ones: of those glibc takes back what it cut
    /// off at once, and when they are freed, the hole is too small for the next one of the same size. With small blocks
    /// between them that stay, such as the runtime's own, each frame of an animation would take new memory.
    private static func allocateBlock(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        guard byteCount < 2 * Self.hugePageSize else { return Self.allocate(byteCount) }
        let size = byteCount + PixelLayout.alignment
        return MemoryRoom.has(size) ? malloc(size) : nil
    }

    /// The size of a huge page on x86-64 and most of arm64.
    private static let hugePageSize = 2 << 20

    /// Aligned memory with undefined content, or `nil`.
    ///
    /// Large buffers are asked for in huge pages: the first touch of each small page costs more than
    /// writing it. A last part of half a huge page or more gets a whole one. Given back with `free`.
    package static func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        var base: UnsafeMutableRawPointer?
        let isLarge = byteCount >= 2 * Self.hugePageSize
        let alignment = isLarge ? Self.hugePageSize : PixelLayout.alignment
        let rest = byteCount % Self.hugePageSize
        let size = isLarge && rest >= Self.hugePageSize / 2 ? byteCount - rest + Self.hugePageSize : byteCount
        guard MemoryRoom.has(size), posix_memalign(&base, alignment, size) == 0, let base else { return nil }
        // Only advice: where it is refused, small pages do as well.
        if isLarge { madvise(base, size, MADV_HUGEPAGE) }
        return base
    }

    /// Calls `body` with the bytes of all planes; `layout` says where each lies.
    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = UnsafeRawBufferPointer(start: self.base, count: self.layout.byteCount)
        return try body(bytes.bytes)
    }

    /// Calls `body` with the memory of all planes, for C libraries.
    package func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: self.base, count: self.layout.byteCount))
    }
}
