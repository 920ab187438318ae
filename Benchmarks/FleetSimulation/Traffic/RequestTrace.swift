// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The requests of a recorded cache trace: keys in their order, each with its bytes.
struct RequestTrace: Sendable {
    /// A trace that cannot be read.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Numbers from 0.
    let keys: [Int]
    /// The bytes of each key, or 1 if the trace has no sizes.
    let bytes: [Int]
    let hasSizes: Bool

    /// Reads lines of a key, or of a key and its bytes.
    ///
    /// The first size of a key counts.
    init(text: String) throws {
        var keys: [Int] = []
        var bytes: [Int] = []
        var hasSizes = false
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: " "))
            let numbers = fields.compactMap { Int(Substring($0)) }
            guard (1...2).contains(fields.count), numbers.count == fields.count, numbers[0] >= 0 else {
                throw Failure(description: "a line of the trace is not a key, or a key and a size: \(Substring(line))")
            }
            keys.append(numbers[0])
            while bytes.count <= numbers[0] { bytes.append(0) }
            hasSizes = hasSizes || numbers.count == 2
            if bytes[numbers[0]] == 0 { bytes[numbers[0]] = numbers.count == 2 ? numbers[1] : 1 }
        }
        (self.keys, self.bytes, self.hasSizes) = (keys, bytes, hasSizes)
    }

    /// Reads a file, and unpacks it with the program `xz` if its name ends so.
    init(path: String) throws {
        guard path.hasSuffix(".xz") else {
            try self.init(text: String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8))
            return
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/xz")
        process.arguments = ["-dc", path]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(description: "xz cannot unpack \(path)") }
        try self.init(text: String(decoding: data, as: UTF8.self))
    }

    /// The number of requests for each key.
    var counts: [Int] {
        var counts = [Int](repeating: 0, count: self.bytes.count)
        for key in self.keys { counts[key] += 1 }
        return counts
    }

    /// The requests of the trace at regular times, each for the only result of a source of its own.
    func requests(rate: Double) -> [Request] {
        self.keys.enumerated().map { Request(time: Double($0) / rate, result: self.bytes.count + $1) }
    }

    /// The keys as sources, each with one result.
    ///
    /// Both have the bytes of the trace, or the given ones if the trace has no sizes.
    func catalogue(sourceBytes: Int, resultBytes: Int) -> Catalogue {
        let sources = self.hasSizes ? self.bytes : self.bytes.map { _ in sourceBytes }
        let results = self.hasSizes ? self.bytes : self.bytes.map { _ in resultBytes }
        return Catalogue(sourceCount: sources.count, sources: Array(sources.indices), bytes: sources + results)
    }
}
