// SPDX-License-Identifier: Apache-2.0

/// Requests that a real fleet received, with the sources and results that they name.
struct RecordedRequests: Sendable {
    /// A line of the file that cannot be read.
    struct Failure: Error, CustomStringConvertible {
        let line: Int
        var description: String {
            "line \(self.line) is not: seconds since the start, number of the node from 0, source, size"
        }
    }

    let requests: [Request]
    /// The source of each result, in the order of the first appearance.
    let sources: [Int]
    let sourceCount: Int

    /// Reads lines with a time in seconds, the number of a node from 0, the name of a source, and that of a size.
    ///
    /// Spaces or tabs separate the fields. A node `-` leaves the choice to the balancer. Lines that begin with `#` are
    /// comments. The requests may be in any order, and their times may count from any moment: the first one becomes 0.
    init(text: String, nodeCount: Int) throws {
        var sourceNumbers: [Substring: Int] = [:]
        var resultNumbers: [[Substring]: Int] = [:]
        var sources: [Int] = []
        var records: [(time: Double, node: Int?, result: Int)] = []
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            let fields = line.split(whereSeparator: \.isWhitespace)
            guard fields.count == 4, let time = Double(fields[0]), time >= 0, time.isFinite else {
                throw Failure(line: index + 1)
            }
            let node = Int(fields[1])
            guard node.map({ (0..<nodeCount).contains($0) }) ?? (fields[1] == "-") else {
                throw Failure(line: index + 1)
            }
            let newSource = sourceNumbers.count
            let source = sourceNumbers[fields[2], default: newSource]
            sourceNumbers[fields[2]] = source
            let key = [fields[2], fields[3]]
            let result = resultNumbers[key, default: sources.count]
            if result == sources.count {
                sources.append(source)
                resultNumbers[key] = result
            }
            records.append((time, node, result))
        }
        let sourceCount = sourceNumbers.count
        let start = records.map(\.time).min() ?? 0
        // Swift does not promise a stable sort, so the position decides between equal times.
        self.requests = records.enumerated()
            .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
            .map {
                Request(time: $0.element.time - start, result: sourceCount + $0.element.result, node: $0.element.node)
            }
        self.sources = sources
        self.sourceCount = sourceCount
    }
}
