import Conformance
import Testing

/// Decodes real files and compares with what reference decoders made of them.
@Suite(.enabled(if: Corpus.isRead), .timeLimit(.minutes(10))) struct ConformanceTests {
    private static let check = ConformanceCheck()
    private static let folders = Set(Corpus.pictures.map(\.folder)).sorted()

    @Test(arguments: Self.folders) func everyFileIsAsTheCorpusSays(folder: String) throws {
        var table = ConformanceTable()
        for picture in Corpus.pictures(in: folder) { table.add(picture, try Self.check.judge(picture)) }
        #expect(table.unexplained == [])
    }

    @Test func everyExceptionIsStillOne() throws {
        for path in CorpusExceptions.reasons.keys {
            let picture = try #require(Corpus.pictures.first { $0.path == path })
            let verdict = try Self.check.judge(picture)
            #expect(verdict != .right, "\(path) is right now: take it off the list")
        }
    }
}
