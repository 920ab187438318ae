// SPDX-License-Identifier: Apache-2.0

import Glibc

extension JPEGCoder {
    /// Faster replacements for libjpeg's own code, which produce the same pixels.
    ///
    /// The only reason to turn them off is doubt: if an image looks wrong, a coder without them shows whether they are
    /// the cause.
    public struct Shortcuts: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Skips the scans of a progressive image that do not contribute to a decode to an eighth of its size.
        public static let scans = Shortcuts(rawValue: 1 << 0)
        /// Reads the Huffman codes of an image in one scan of 64 KiB or more with Tintype's own decoder.
        ///
        /// It yields the same coefficients as libjpeg-turbo, even if the file is damaged. It is not used if the process
        /// has an unknown version of the library, if it disagrees with the library on two small images that are decoded
        /// before its first use, or if the end of the scan is missing.
        public static let entropyDecoding = Shortcuts(rawValue: 1 << 1)
        /// ``entropyDecoding`` for small files too, for tests.
        ///
        /// It saves no time there.
        package static let entropyDecodingOfSmallFiles: Shortcuts = [.entropyDecoding, Shortcuts(rawValue: 1 << 7)]
        /// All shortcuts.
        public static let all: Shortcuts = [.scans, .entropyDecoding]
        /// All shortcuts, or none if the process was started with `TINTYPE_JPEG_SHORTCUTS=0` in its environment.
        public static let standard: Shortcuts = {
            guard let value = getenv("TINTYPE_JPEG_SHORTCUTS") else { return .all }
            return String(cString: value) == "0" ? [] : .all
        }()

        /// Returns the fewest bytes of a scan for Tintype's entropy decoder; `nil` if a file of `byteCount` bytes does
        /// not use it.
        ///
        /// Building its tables takes 0.1 ms, which it saves on about 32 KiB of codes.
        func smallestOwnEntropy(ofFile byteCount: Int) -> Int? {
            self.wantsOwnEntropy(ofFile: byteCount) && JPEGSelfCheck.hasPassed ? self.smallestScan : nil
        }

        /// Returns whether a file uses Tintype's entropy decoder, before the self-check, which takes milliseconds the
        /// first time.
        func wantsOwnEntropy(ofFile byteCount: Int) -> Bool {
            self.contains(.entropyDecoding) && byteCount >= self.smallestScan
        }

        private var smallestScan: Int { self.contains(.entropyDecodingOfSmallFiles) ? 0 : 64 << 10 }
    }
}
