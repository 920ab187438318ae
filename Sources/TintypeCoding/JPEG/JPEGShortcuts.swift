import Glibc

extension JPEGCoder {
    /// Ways around libjpeg's own code that give the same pixels sooner.
    ///
    /// There is no need to turn them off but doubt: where an image looks wrong, a coder without them tells whether they are
    /// the cause.
    public struct Shortcuts: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Of a progressive image that is decoded to an eighth of its size, the scans that give nothing to that are
        /// passed over.
        public static let scans = Shortcuts(rawValue: 1 << 0)
        /// The Huffman codes of an image in one scan, of 64 KiB or more, are read by a decoder of Tintype's own.
        ///
        /// It gives the coefficients that libjpeg-turbo's gives, also where the file is damaged. It is left out where the process
        /// has a library that it does not know, or disagrees with on two small images that are decoded before its first use,
        /// and where the end of the scan is missing.
        public static let entropyDecoding = Shortcuts(rawValue: 1 << 1)
        /// ``entropyDecoding`` with fewer bytes too, where it gains nothing: for tests.
        package static let entropyDecodingOfSmallFiles: Shortcuts = [.entropyDecoding, Shortcuts(rawValue: 1 << 7)]
        /// All of them.
        public static let all: Shortcuts = [.scans, .entropyDecoding]
        /// All of them, or none in a process that was started with `TINTYPE_JPEG_SHORTCUTS=0` in its environment.
        public static let standard: Shortcuts = {
            guard let value = getenv("TINTYPE_JPEG_SHORTCUTS") else { return .all }
            return String(cString: value) == "0" ? [] : .all
        }()

        /// The fewest bytes of a scan that the entropy decoder of our own is used for, in a file of `byteCount` bytes; `nil` where
        /// it is not used.
        ///
        /// Making its tables takes 0.1 ms, which it gains on about half as many.
        func smallestOwnEntropy(ofFile byteCount: Int) -> Int? {
            self.wantsOwnEntropy(ofFile: byteCount) && JPEGSelfCheck.hasPassed ? self.smallestScan : nil
        }

        /// Whether it is used for such a file, unless its check says no, which takes milliseconds the first time.
        func wantsOwnEntropy(ofFile byteCount: Int) -> Bool {
            self.contains(.entropyDecoding) && byteCount >= self.smallestScan
        }

        private var smallestScan: Int { self.contains(.entropyDecodingOfSmallFiles) ? 0 : 64 << 10 }
    }
}
