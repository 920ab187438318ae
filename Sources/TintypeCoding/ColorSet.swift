/// The distinct colours of pictures, as long as they are few.
///
/// A colour has red in its lowest byte, then green, blue and alpha.
struct ColorSet {
    static let maximumCount = 256
    /// Twice as many places and more, so that a search ends soon.
    private static let placeCount = 1_024

    /// The colours in the order in which they were met.
    private(set) var colors: [UInt32] = []
    /// The indices by the hash of their colours; -1 is a free place.
    private var places = [Int16](repeating: -1, count: placeCount)

    /// Adds a colour; `false` where that would be one too many.
    mutating func insert(_ color: UInt32) -> Bool {
        let place = self.place(of: color)
        if self.places[place] >= 0 { return true }
        guard self.colors.count < Self.maximumCount else { return false }
        self.places[place] = Int16(self.colors.count)
        self.colors.append(color)
        return true
    }

    /// The index of a colour in ``colors``, or `nil` for one that is not there.
    func index(of color: UInt32) -> UInt8? {
        let index = self.places[self.place(of: color)]
        return index < 0 ? nil : UInt8(index)
    }

    /// The place that has a colour, or the free one where it belongs.
    private func place(of color: UInt32) -> Int {
        // Fibonacci hashing: the high bits of the product are well mixed.
        var place = Int((color &* 0x9E37_79B1) >> 22)
        while self.places[place] >= 0, self.colors[Int(self.places[place])] != color {
            place = (place + 1) % Self.placeCount
        }
        return place
    }
}
