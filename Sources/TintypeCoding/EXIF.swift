package import FoundationEssentials
import TintypeImage

/// The part of an EXIF block that pictures need: the orientation.
///
/// Source: Exif 2.32, section 4.5 (TIFF structure) and 4.6.4. A broken block is ignored,
/// never fatal.
package enum EXIF {
    private static let orientationTag = 0x0112
    private static let shortType = 3

    /// The orientation in a TIFF block, or `nil` when there is none or the block is broken.
    static func orientation(in block: Data) -> Orientation? {
        guard let (offset, order) = self.place(in: block) else { return nil }
        return block.uint16(at: offset, order).flatMap { Orientation(rawValue: UInt8(clamping: $0)) }
    }

    /// The block with its orientation set to upright, to go with pixels that were turned.
    package static func upright(_ block: Data) -> Data {
        guard let (offset, order) = self.place(in: block) else { return block }
        var block = Data(block)
        block[offset + (order == .big ? 1 : 0)] = Orientation.up.rawValue
        block[offset + (order == .big ? 0 : 1)] = 0
        return block
    }

    /// Where the two bytes of the orientation stand in a block.
    private static func place(in block: Data) -> (offset: Int, order: ByteOrder)? {
        let start = self.start(of: block)
        let tiff = block.slice(from: start, to: block.count)
        guard let order = self.order(of: tiff), let offset = self.orientationOffset(in: tiff, order) else { return nil }
        return (start + offset, order)
    }

    /// Where the TIFF structure begins, behind the prefix that JPEG gives it.
    private static func start(of block: Data) -> Int {
        block.has("Exif\0\0", at: 0) ? 6 : 0
    }

    private static func order(of tiff: Data) -> ByteOrder? {
        if tiff.has("II", at: 0) { return .little }
        return tiff.has("MM", at: 0) ? .big : nil
    }

    /// Where they stand in the TIFF structure.
    private static func orientationOffset(in tiff: Data, _ order: ByteOrder) -> Int? {
        guard
            tiff.uint16(at: 2, order) == 42, let directory = tiff.uint32(at: 4, order),
            let count = tiff.uint16(at: directory, order)
        else { return nil }
        for index in 0..<count {
            let entry = directory + 2 + index * 12
            guard let tag = tiff.uint16(at: entry, order) else { return nil }
            guard tag == self.orientationTag else { continue }
            guard tiff.uint16(at: entry + 2, order) == self.shortType, tiff.uint16(at: entry + 8, order) != nil else {
                return nil
            }
            return entry + 8
        }
        return nil
    }
}
