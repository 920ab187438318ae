// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Requests to a cache, recorded somewhere: keys in their order, each with a weight.
struct CacheTrace: Sendable {
    let name: String
    /// Small integers, in the order of first appearance.
    let keys: [Int]
    /// The weight of each key: its bytes, or 1.
    let weights: [Int]
    /// Whether the weights are bytes.
    let isSized: Bool

    /// The weight of all keys together.
    var uniqueWeight: Int { self.weights.reduce(0, +) }

    /// Reads all traces of the corpus, with the program `xz`.
    static func all(in folder: URL) async throws -> [CacheTrace] {
        let index = try self.lines(of: folder.appendingPathComponent("index.tsv")).dropFirst()
        var traces: [CacheTrace] = []
        for name in index.compactMap({ $0.first }) {
            let path = folder.appendingPathComponent("\(name).txt.xz").path
            let text = try await BlockingLane.shared.run { try self.unpack(path) }
            traces.append(CacheTrace(name: name, text: text))
        }
        return traces
    }

    /// The fields of a table.
    static func lines(of file: URL) throws -> [[String]] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
            $0.split(separator: "\t").map(String.init)
        }
    }

    private static func unpack(_ path: String) throws -> Data {
        let process = try ChildProcess(["/usr/bin/xz", "-dc", path])
        let data = process.output?.readDataToEndOfFile() ?? Data()
        guard process.wait().status == 0 else { throw Unavailable("xz cannot unpack \(path)") }
        return data
    }

    /// Reads lines of a key, or of a key and a size.
    ///
    /// The first size of a key counts.
    private init(name: String, text: Data) {
        var keys: [Int] = []
        var weights: [Int] = []
        var fields = [0, 0]
        var field = 0
        var isSized = false
        for byte in text {
            switch byte {
            case UInt8(ascii: "\n"):
                keys.append(fields[0])
                while weights.count <= fields[0] { weights.append(0) }
                if weights[fields[0]] == 0 { weights[fields[0]] = field == 1 ? fields[1] : 1 }
                fields = [0, 0]
                field = 0
            case UInt8(ascii: " "):
                field = 1
                isSized = true
            default:
                fields[field] = fields[field] * 10 + Int(byte) - 48
            }
        }
        self.name = name
        self.keys = keys
        self.weights = weights
        self.isSized = isSized
    }
}
