import Conformance
import Glibc

/// Prints how many files of each folder of the corpus come out right, refused or wrong.
@main
struct TintypeConformance {
    static func main() throws {
        guard !Corpus.pictures.isEmpty else {
            print("The corpus is not on this machine, nor in the repository; set TINTYPE_CORPUS to its folder.")
            exit(1)
        }
        let check = ConformanceCheck()
        var table = ConformanceTable()
        for picture in Corpus.pictures { table.add(picture, try check.judge(picture)) }
        print(table.text)
    }
}
