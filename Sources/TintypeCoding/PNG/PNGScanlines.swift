// SPDX-License-Identifier: Apache-2.0

import CTintypePNGFilters
import TintypeImage

/// The scanlines of an image, inflated and unfiltered one by one.
///
/// The input is compressed bytes that arrive in pieces, or filtered scanlines in memory. It never inflates more bytes
/// than the image has.
final class PNGScanlines {
    /// One unfiltered scanline.
    struct Line {
        /// The samples as packed in the file; valid until the next call of ``next(_:)``.
        let samples: UnsafeRawBufferPointer
        /// The index of its pass.
        let pass: Int
        /// Its row within the pass.
        let row: Int
    }

    /// The bytes to inflate at once: enough for an efficient inflater, few enough for the cache.
    static let stripByteCount = 64 << 10

    let passes: [PNGPass]
    private let layout: PNGLayout
    private let inflater: PNGInflater?
    private let work: DecodeWork
    /// Filtered bytes, of which the range `filled` is not used yet; the caller owns them if there is no inflater.
    private var strip: UnsafeMutableRawBufferPointer
    private var filled: Range<Int>
    /// The number of filtered bytes that are not inflated yet.
    private var missing: Int
    /// The last two unfiltered lines, because filters depend on the line above.
    private let lines: UnsafeMutableRawBufferPointer
    private let lineCapacity: Int
    private var current = 0
    private var pass = 0
    private var row = 0
    /// The number of lines returned.
    private(set) var lineCount = 0

    /// Creates scanlines of compressed bytes.
    convenience init(_ layout: PNGLayout, work: DecodeWork) throws(CodingError) {
        let inflater = try PNGInflater()
        let missing = layout.filteredByteCount
        let capacity = min(missing, max(Self.stripByteCount, layout.byteCount(ofLine: layout.width) + 1))
        let strip = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
        self.init(layout, inflater, strip: strip, filled: 0..<0, missing: missing, work: work)
    }

    /// Creates scanlines of filtered bytes in memory, which must outlive the object.
    convenience init(_ layout: PNGLayout, filtered: UnsafeMutableRawBufferPointer, work: DecodeWork) {
        self.init(layout, nil, strip: filtered, filled: 0..<filtered.count, missing: 0, work: work)
    }

    /// Continues with filtered scanlines in memory, after all earlier lines were returned.
    ///
    /// They must stay valid until the next call.
    func goOn(with filtered: UnsafeMutableRawBufferPointer) {
        self.strip = filtered
        self.filled = 0..<filtered.count
    }

    private init(
        _ layout: PNGLayout,
        _ inflater: PNGInflater?,
        strip: UnsafeMutableRawBufferPointer,
        filled: Range<Int>,
        missing: Int,
        work: DecodeWork
    ) {
        self.layout = layout
        self.work = work
        self.passes = layout.passes
        self.inflater = inflater
        self.strip = strip
        self.filled = filled
        self.missing = missing
        self.lineCapacity = layout.byteCount(ofLine: layout.width)
        self.lines = .allocate(byteCount: 2 * self.lineCapacity, alignment: 16)
        self.lines.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        self.lines.deallocate()
        if self.inflater != nil { self.strip.deallocate() }
    }

    /// Whether the memory does not contain another line.
    var isAtEndOfMemory: Bool { self.filled.count <= self.lineCapacity }
    /// Whether all lines were returned.
    var isFinished: Bool { self.pass == self.passes.count }

    /// Inflates and unfilters the next line.
    ///
    /// - Parameter input: Compressed bytes; the method removes the used ones from the front. It uses all of them before
    ///   it returns `nil`, unless the image is finished.
    /// - Returns: The line, or `nil` if there are no more lines or more compressed bytes are needed.
    /// - Throws: `CodingError` for data that end early or are broken, and for too much work; `CancellationError`.
    func next(_ input: inout UnsafeRawBufferPointer) throws -> Line? {
        guard self.pass < self.passes.count else { return nil }
        let width = self.passes[self.pass].width
        let count = self.layout.byteCount(ofLine: width)
        while self.filled.count < count + 1 {
            guard try self.fill(&input) else { return nil }
        }
        // Count the filter and the pixels; filtering four bytes takes as long as converting a pixel. The pixels of an
        // interlaced image are spread over a row of the whole image.
        let strewn = self.layout.isInterlaced ? self.layout.width / 2 : 0
        try self.work.count(width + strewn + count / 4 + 1)
        let line = Line(samples: try self.unfilter(count), pass: self.pass, row: self.row)
        self.filled = self.filled.lowerBound + count + 1..<self.filled.upperBound
        self.advance()
        return line
    }

    /// Checks for the end of the compressed bytes and their checksum behind the last line.
    ///
    /// - Parameter input: Compressed bytes; the method removes the used ones from the front.
    /// - Returns: `false` if more compressed bytes are needed.
    /// - Throws: The errors of ``PNGInflater/hasEnded(_:work:)``.
    func hasEnded(_ input: inout UnsafeRawBufferPointer) throws -> Bool {
        try self.inflater?.hasEnded(&input, work: self.work) ?? true
    }

    private func advance() {
        self.lineCount += 1
        self.row += 1
        guard self.row == self.passes[self.pass].height else { return }
        self.row = 0
        self.pass += 1
    }

    /// Inflates more bytes.
    ///
    /// Returns `false` if more compressed bytes are needed.
    private func fill(_ input: inout UnsafeRawBufferPointer) throws -> Bool {
        guard let inflater = self.inflater, !inflater.isFinished, self.missing > 0 else {
            throw CodingError.truncated(.png)
        }
        guard !input.isEmpty || inflater.isAhead else { return false }
        if self.filled.lowerBound > 0 {
            // Move the start of an incomplete line to the front.
            let rest = UnsafeRawBufferPointer(rebasing: self.strip[self.filled])
            self.strip.copyMemory(from: rest)
            self.filled = 0..<rest.count
        }
        let end = min(self.strip.count, self.filled.count + self.missing)
        let free = UnsafeMutableRawBufferPointer(rebasing: self.strip[self.filled.upperBound..<end])
        let offered = min(input.count, PNGInflater.inputByteCount)
        var step = UnsafeRawBufferPointer(rebasing: input[..<offered])
        let count = try inflater.inflate(&step, into: free)
        let used = offered - step.count
        input = UnsafeRawBufferPointer(rebasing: input[used...])
        try self.work.count(used * DecodeWork.unitsPerByte + count / 4)
        self.filled = 0..<self.filled.upperBound + count
        self.missing -= count
        return count > 0 || !input.isEmpty || inflater.isFinished
    }

    private func unfilter(_ count: Int) throws(CodingError) -> UnsafeRawBufferPointer {
        guard
            let lines = self.lines.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let strip = self.strip.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { throw .truncated(.png) }
        let prior = lines + self.current * self.lineCapacity
        // The first line of a pass has zeros above it, because each pass is an image of its own.
        if self.row == 0 { prior.update(repeating: 0, count: self.lineCapacity) }
        self.current = 1 - self.current
        let line = lines + self.current * self.lineCapacity
        let filtered = strip + self.filled.lowerBound
        guard
            cpngfilters_undo(CInt(filtered[0]), line, filtered + 1, prior, count, self.layout.bytesPerPixel) != 0
        else { throw .corrupt(.png, "a scanline has an unknown filter") }
        return UnsafeRawBufferPointer(start: line, count: count)
    }
}
