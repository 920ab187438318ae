// SPDX-License-Identifier: Apache-2.0

import Testing

/// The figures of a text for Prometheus, as a scraper reads them.
struct ScrapedText {
    /// The values by series: the name of the metric with its labels.
    let values: [String: Double]
    /// The types of the metrics by name.
    let types: [String: String]

    /// Reads a text, and records an issue for each metric or series that is there twice or has no type.
    init(_ text: String) throws {
        var values: [String: Double] = [:]
        var types: [String: String] = [:]
        for line in text.split(separator: "\n") {
            if line.hasPrefix("# TYPE ") {
                let parts = line.dropFirst(7).split(separator: " ").map { String($0) }
                try #require(parts.count == 2)
                #expect(types[parts[0]] == nil, "\(parts[0]) is there twice")
                types[parts[0]] = parts[1]
            } else if !line.hasPrefix("#") {
                let space = try #require(line.lastIndex(of: " "))
                let series = String(line[..<space])
                let value = try #require(Double(line[line.index(after: space)...]))
                #expect(values[series] == nil, "\(series) is there twice")
                values[series] = value
            }
        }
        self.values = values
        self.types = types
        let names = self.names
        for series in values.keys {
            let name = String(series.prefix { $0 != "{" })
            #expect(names.contains(name), "\(name) has no type")
        }
    }

    /// The names of the metrics, and of the parts of histograms, even if they have no value yet.
    var names: Set<String> {
        Set(
            self.types.flatMap { name, type in
                type == "histogram" ? ["\(name)_bucket", "\(name)_sum", "\(name)_count"] : [name]
            }
        )
    }
}
