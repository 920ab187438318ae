import TestSupport
import TintypeImage

extension PixelBuffer {
    /// The largest difference of a sample to what `expected` gives for column, row and channel.
    func largestDifference(_ expected: (_ column: Int, _ row: Int, _ channel: Int) -> Int) -> Int {
        let channels = self.format.channelCount
        var largest = 0
        for row in 0..<self.height {
            for (index, sample) in self.row(row).enumerated() {
                largest = max(largest, abs(Int(sample) - expected(index / channels, row, index % channels)))
            }
        }
        return largest
    }

    /// The mean of all samples.
    var mean: Double {
        let samples = self.samples
        return Double(samples.reduce(0) { $0 + Int($1) }) / Double(samples.count)
    }
}
