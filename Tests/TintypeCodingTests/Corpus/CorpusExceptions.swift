/// The files that do not come out as the corpus says yet, each with the reason.
enum CorpusExceptions {
    static let reasons: [String: String] = [
        "jpeg-progressive/peacock.progressive.scan000.jpeg":
            "libjpeg-turbo before 3 smooths blocks that have only their first coefficient in another way"
    ]

    static func isListed(_ picture: CorpusPicture) -> Bool {
        self.reasons[picture.path] != nil
    }
}
