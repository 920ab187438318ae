// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Tintype
@testable import TintypeCluster
@testable import TintypeServer

/// The dashboard for Grafana in `Examples`.
@Suite struct DashboardTests {
    private struct Dashboard: Decodable {
        struct Target: Decodable {
            let expr: String
            let legendFormat: String
        }

        struct Position: Decodable {
            let x: Int
            let y: Int
            let w: Int
            let h: Int
        }

        struct Panel: Decodable {
            let id: Int
            let title: String
            let gridPos: Position
            let targets: [Target]?
        }

        struct Variable: Decodable {
            let name: String
            let type: String
            let definition: String?
        }

        struct Templating: Decodable {
            let list: [Variable]
        }

        let panels: [Panel]
        let templating: Templating

        /// The queries of all panels and variables.
        var queries: [String] {
            self.panels.flatMap { ($0.targets ?? []).map(\.expr) } + self.templating.list.compactMap(\.definition)
        }

        /// The names of the metrics in ``queries``.
        var metrics: Set<String> {
            Set(
                self.queries.flatMap { query in
                    query.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map { String($0) }
                        .filter { $0.hasPrefix("tintype_") || $0.hasPrefix("process_") }
                }
            )
        }
    }

    private let dashboard: Dashboard
    private let text: ScrapedText

    init() throws {
        var folder = URL(filePath: #filePath)
        for _ in 0..<4 { folder.deleteLastPathComponent() }
        let file = folder.appending(path: "Examples/Grafana/tintype.json")
        self.dashboard = try JSONDecoder().decode(Dashboard.self, from: Data(contentsOf: file))
        self.text = try ScrapedText(
            ServerMetrics(version: "1").text(
                connections: ConnectionActor.Counters(),
                admission: (count: 0, limit: 0, oldest: .zero),
                cluster: ClusterStatistics(),
                loader: LoaderStatistics()
            )
        )
    }

    @Test func `each metric of the dashboard is one of the server`() {
        #expect(self.dashboard.metrics.count > 40)
        #expect(self.dashboard.metrics.subtracting(self.text.names) == [])
    }

    @Test func `each metric of the server's own is on the dashboard`() {
        let prefixes = ["tintype_http_", "tintype_cluster_"]
        for (name, type) in self.text.types where prefixes.contains(where: { name.hasPrefix($0) }) {
            let names = type == "histogram" ? ["\(name)_bucket", "\(name)_sum", "\(name)_count"] : [name]
            #expect(!self.dashboard.metrics.isDisjoint(with: names), "\(name)")
        }
    }

    @Test(arguments: ["rate(", "increase("]) func `rates and increases are of counters`(function: String) {
        for query in self.dashboard.queries {
            for part in query.split(separator: function, omittingEmptySubsequences: false).dropFirst() {
                let name = String(part.prefix { $0 != "{" })
                let isPart = ["_bucket", "_sum", "_count"].contains { name.hasSuffix($0) }
                #expect(self.text.types[name] == "counter" || isPart, "\(name)")
            }
        }
    }

    @Test func `the data source is a variable`() {
        #expect(self.dashboard.templating.list.contains { $0.name == "datasource" && $0.type == "datasource" })
    }

    @Test func `panels have numbers of their own and do not overlap`() {
        let panels = self.dashboard.panels
        #expect(Set(panels.map(\.id)).count == panels.count)
        for (index, first) in panels.enumerated() {
            let place = first.gridPos
            #expect(place.x >= 0 && place.x + place.w <= 24, "\(first.title)")
            for second in panels[(index + 1)...] {
                let other = second.gridPos
                let isApart =
                    place.x + place.w <= other.x || other.x + other.w <= place.x || place.y + place.h <= other.y
                    || other.y + other.h <= place.y
                #expect(isApart, "\(first.title) and \(second.title)")
            }
        }
    }
}
