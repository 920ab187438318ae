// SPDX-License-Identifier: Apache-2.0

/// The pixels of an image: immutable, reference-counted, in one aligned block.
///
/// A class, so that copying an image is free and a cache can hold it weakly.
public final class PixelBuffer: Sendable {
    /// The places of the planes.
    public let layout: PixelLayout
    /// Written only while `init` runs, before any other thread can know of it.
    private let memory: AlignedMemory

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
    /// ```swift
    /// let layout = try PixelLayout(format: .gray8, width: 64, height: 64)
    /// let white = try PixelBuffer(layout) { bytes in
    ///     for offset in 0..<layout.byteCount { bytes.storeBytes(of: 255, toByteOffset: offset, as: UInt8.self) }
    /// }
    /// ```
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
        let memory = try AlignedMemory(byteCount: layout.byteCount + extraByteCount)
        try fill(memory.bytes)
        layout.clearPadding(of: UnsafeMutableRawBufferPointer(rebasing: memory.bytes[..<layout.byteCount]))
        self.layout = layout
        self.memory = memory
    }

    /// Calls `body` with the bytes of all planes; `layout` says where each lies.
    ///
    /// ```swift
    /// let red = image.pixels.withBytes { $0.unsafeLoad(fromByteOffset: 0, as: UInt8.self) }
    /// ```
    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = UnsafeRawBufferPointer(start: self.memory.start, count: self.layout.byteCount)
        return try body(bytes.bytes)
    }

    /// Calls `body` with the memory of all planes, for C libraries.
    package func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: self.memory.start, count: self.layout.byteCount))
    }
}

/// Gives the rows of an image one at a time, from the top: for work that needs no whole image.
///
/// Used by one thread at a time.
///
/// ```swift
/// let decoder = try ImageDecoder(data, registry: CoderRegistry())
/// let rowCount = try decoder.withRows(options: DecodeOptions()) { rows, _, _ in
///     let row = UnsafeMutableRawBufferPointer.allocate(byteCount: rows.layout.planes[0].bytesPerRow, alignment: 64)
///     defer { row.deallocate() }
///     for _ in 0..<rows.layout.height { try rows.readRow(into: row) }
///     return rows.layout.height
/// }
/// ```
public protocol RowSource: AnyObject {
    /// The size and format of the image; its planes say how long a row is.
    var layout: PixelLayout { get }

    /// Writes the samples of the next row to the start of `row`, which holds at least one row.
    ///
    /// - Throws: The error of the source for damaged input; `CancellationError`.
    func readRow(into row: UnsafeMutableRawBufferPointer) throws

    /// The damage that was found in the rows so far; empty by default.
    var damage: ImageDamage { get }
}

extension RowSource {
    public var damage: ImageDamage { [] }
}
