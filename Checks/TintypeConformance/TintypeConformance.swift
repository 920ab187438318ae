// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConformanceSupport

/// Prints how many files in each folder of the corpus are decoded correctly, rejected or decoded incorrectly.
@main
struct TintypeConformance {
    static func main() throws {
        guard !Corpus.images.isEmpty else {
            print("The corpus is not on this machine, nor in the repository; set TINTYPE_CORPUS to its folder.")
            exit(1)
        }
        let check = ConformanceCheck()
        var table = ConformanceTable()
        for image in Corpus.images { table.add(image, try check.judge(image)) }
        print(table.text)
        var lossless = LosslessCheck()
        for image in Corpus.images where image.format == "jpeg" {
            for fault in try lossless.faults(of: image.data) { print("lossless \(image.path): \(fault)") }
        }
        let refused = lossless.refused.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
        print(
            "\(lossless.changed) JPEGs were changed without loss in \(lossless.transforms) ways, \(lossless.inverses) of them "
                + "back as well; refused: \(refused.joined(separator: ", "))"
        )
    }
}
