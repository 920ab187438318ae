// SPDX-License-Identifier: Apache-2.0

/// The hash slots of a Redis Cluster (Redis Cluster specification, "Key distribution model").
enum KeySlot {
    static let count = 16_384

    /// Returns the slot of a key: of its hash tag, if it has one.
    static func of(_ key: String) -> Int {
        var key = key
        return key.withUTF8 { Int(self.crc16(self.hashed($0)) % UInt16(self.count)) }
    }

    /// The bytes between the first `{` and the next `}`, or the whole key without such bytes.
    private static func hashed(_ key: UnsafeBufferPointer<UInt8>) -> Slice<UnsafeBufferPointer<UInt8>> {
        guard let open = key.firstIndex(of: UInt8(ascii: "{")),
            let close = key[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
        else { return key[...] }
        return key[(open + 1)..<close]
    }

    /// The CRC-16 with the polynomial 0x1021 and the start value 0 (XMODEM).
    private static func crc16(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> UInt16 {
        var remainder: UInt16 = 0
        for byte in bytes { remainder = remainder << 8 ^ self.table[Int(UInt8(remainder >> 8) ^ byte)] }
        return remainder
    }

    private static let table: [UInt16] = (0..<256).map { byte in
        (0..<8).reduce(UInt16(byte) << 8) { value, _ in value & 0x8000 != 0 ? value << 1 ^ 0x1021 : value << 1 }
    }
}
