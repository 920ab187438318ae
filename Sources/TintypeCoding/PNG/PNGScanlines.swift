import CPNGFilters
import TintypeImage

/// Gives the scanlines of an image one by one, inflated and unfiltered.
///
/// Works from compressed bytes that arrive in pieces, or from filtered scanlines that lie in
/// memory whole. Never inflates more than the image has.
final class PNGScanlines {
    /// One unfiltered scanline.
    struct Line {
        /// The samples as packed in the file; valid until the next line is asked for.
        let samples: UnsafeRawBufferPointer
        /// The index of its pass.
        let pass: Int
        /// Its row within the pass.
        let row: Int
    }

    /// Inflated at once: enough that the inflater runs at its best, little enough for the cache.
    static let stripByteCount = 64 << 10

    let passes: [PNGPass]
    private let layout: PNGLayout
    private let inflater: PNGInflater?
    private let work: DecodeWork
    /// Filtered bytes, of which those in `filled` are not used yet; lent where there is no inflater.
    private var strip: UnsafeMutableRawBufferPointer
    private var filled: Range<Int>
    /// The filtered bytes that are still to be inflated.
    private var missing: Int
    /// The last two lines, unfiltered; the filters look at the one above.
    private let lines: UnsafeMutableRawBufferPointer
    private let lineCapacity: Int
    private var current = 0
    private var pass = 0
    private var row = 0
    /// The lines that were given out.
    private(set) var lineCount = 0

    /// Prepares for compressed bytes.
    convenience init(_ layout: PNGLayout, work: DecodeWork) throws(CodingError) {
        let inflater = try PNGInflater()
        let missing = layout.filteredByteCount
        let capacity = min(missing, max(Self.stripByteCount, layout.byteCount(ofLine: layout.width) + 1))
        let strip = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
        self.init(layout, inflater, strip: strip, filled: 0..<0, missing: missing, work: work)
    }

    /// Takes filtered scanlines that lie in memory, which must outlive the scanlines.
    convenience init(_ layout: PNGLayout, filtered: UnsafeMutableRawBufferPointer, work: DecodeWork) {
        self.init(layout, nil, strip: filtered, filled: 0..<filtered.count, missing: 0, work: work)
    }

    /// Goes on with filtered scanlines that lie in memory, once the ones before were given out; they must be there until the
    /// next call.
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

    /// Whether what lies in memory has no further line.
    var isAtEndOfMemory: Bool { self.filled.count <= self.lineCapacity }
    /// Whether all lines were given out.
    var isFinished: Bool { self.pass == self.passes.count }

    /// Inflates and unfilters the next line.
    ///
    /// - Parameter input: Compressed bytes; what was used is taken off its front. All of them
    ///   are used before `nil` is returned, unless the image is finished.
    /// - Returns: `nil` when there are no more lines, or when it takes more compressed bytes.
    /// - Throws: `CodingError` for data that break off or are broken, and for too much work; `CancellationError`.
    func next(_ input: inout UnsafeRawBufferPointer) throws -> Line? {
        guard self.pass < self.passes.count else { return nil }
        let width = self.passes[self.pass].width
        let count = self.layout.byteCount(ofLine: width)
        while self.filled.count < count + 1 {
            guard try self.fill(&input) else { return nil }
        }
        // Its filter and its pixels; four bytes are filtered in the time that a pixel takes. Those of an interlaced
        // image are strewn over a row of the whole image.
        let strewn = self.layout.isInterlaced ? self.layout.width / 2 : 0
        try self.work.count(width + strewn + count / 4 + 1)
        let line = Line(samples: try self.unfilter(count), pass: self.pass, row: self.row)
        self.filled = self.filled.lowerBound + count + 1..<self.filled.upperBound
        self.advance()
        return line
    }

    /// Looks behind the last line for the end of the compressed bytes and their checksum.
    ///
    /// - Parameter input: Compressed bytes; what was used is taken off its front.
    /// - Returns: `false` when it takes more compressed bytes to tell.
    /// - Throws: As ``PNGInflater/hasEnded(_:work:)``.
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

    /// Inflates more; false when it takes more compressed bytes.
    private func fill(_ input: inout UnsafeRawBufferPointer) throws -> Bool {
        guard let inflater = self.inflater, !inflater.isFinished, self.missing > 0 else {
            throw CodingError.truncated(.png)
        }
        guard !input.isEmpty || inflater.isAhead else { return false }
        if self.filled.lowerBound > 0 {
            // The start of a line that is not there whole moves to the front.
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
        // Nothing lies above the first line of a pass: each is an image of its own.
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
