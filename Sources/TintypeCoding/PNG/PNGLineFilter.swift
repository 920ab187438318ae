import CPNGFilters

/// Filters scanlines from the top, each with the filter that suits it best.
struct PNGLineFilter {
    private static let filterCount = 5

    private let lineByteCount: Int
    private let bytesPerPixel: Int
    private let choosesFilters: Bool
    /// The line that is being written and the one above; a sample may take a byte here that
    /// takes less in the file.
    private var line: [UInt8]
    private var prior: [UInt8]
    /// The line as filtered by each filter.
    private var candidates: [UInt8]

    init(lineByteCount: Int, width: Int, bytesPerPixel: Int, choosesFilters: Bool) {
        self.lineByteCount = lineByteCount
        self.bytesPerPixel = bytesPerPixel
        self.choosesFilters = choosesFilters
        self.line = Array(repeating: 0, count: max(lineByteCount, width))
        self.prior = self.line
        self.candidates = choosesFilters ? Array(repeating: 0, count: Self.filterCount * (lineByteCount + 1)) : []
    }

    /// Writes the next line with its filter byte to `target`.
    ///
    /// - Parameters:
    ///   - target: Memory for the line and one byte more.
    ///   - fill: Writes the samples of the line.
    mutating func write(_ target: UnsafeMutableRawBufferPointer, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
        swap(&self.line, &self.prior)
        self.line.withUnsafeMutableBufferPointer { line in
            if let base = line.baseAddress { fill(base) }
        }
        guard self.choosesFilters else {
            target[0] = 0
            self.line.withUnsafeBytes { line in
                UnsafeMutableRawBufferPointer(rebasing: target[1...]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: line[..<self.lineByteCount])
                )
            }
            return
        }
        let step = self.lineByteCount + 1
        let best = self.bestFilter()
        self.candidates.withUnsafeBytes { candidates in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: candidates[best * step..<(best + 1) * step]))
        }
    }

    private mutating func bestFilter() -> Int {
        let step = self.lineByteCount + 1
        return self.candidates.withUnsafeMutableBufferPointer { candidates in
            self.line.withUnsafeBufferPointer { line in
                self.prior.withUnsafeBufferPointer { prior in
                    guard
                        let candidates = candidates.baseAddress, let line = line.baseAddress,
                        let prior = prior.baseAddress
                    else { return 0 }
                    var best = 0
                    var least = UInt64.max
                    for filter in 0..<Self.filterCount {
                        let sum = cpngfilters_apply(
                            CInt(filter),
                            candidates + filter * step,
                            line,
                            prior,
                            self.lineByteCount,
                            self.bytesPerPixel
                        )
                        if sum < least {
                            least = sum
                            best = filter
                        }
                    }
                    return best
                }
            }
        }
    }
}
