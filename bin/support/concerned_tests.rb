# frozen_string_literal: true

# Which test files depend on changed files. On a test file only itself does. On another file of test/, on an example and
# on a benchmark the tests of its folder do, and those that name it, or name a file that names it. On anything else, and
# on what nothing names, all do.
class ConcernedTests
  # No test file runs the programs there.
  C_TESTS = "test/c/"
  # Inputs of fuzzers, which name nothing.
  CORPUS = "test/fuzz/corpus/"
  private_constant :C_TESTS, :CORPUS

  # @param root [String] the checkout
  # @param files [Array<String>] the test files that there are, relative to the root
  def initialize(root, files)
    @root = root
    @files = files
    @found = {}
  end

  # @param changed [Array<String>] relative to the root
  # @return [Array<String>, nil] nil when each test may depend on them
  def call(changed)
    @found.fetch(changed) { @found[changed] = find(changed) }
  end

  private

  def find(changed)
    reached = changed.dup
    tests = []
    reached.each do |path| # which grows
      next tests << path if path.match?(/_test\.(?:rb|c)\z/) && path.start_with?("test/")

      folder, users = about(path)
      return nil if folder.nil? || ((folder + users).empty? && !path.start_with?(C_TESTS))

      tests.concat(folder)
      reached.concat(users - reached)
    end
    tests & @files
  end

  # @return [Array(Array<String>, Array<String>), nil] tests of the same folder, and files that name this one; nil for
  #   what any test may depend on
  def about(path)
    case path.split("/")
    in ["test", "support", *, _] then [[], users_of(path)]
    in ["test", folder, _, *] then [tests_of(folder), users_of(path)]
    in ["examples" | "benchmark" => folder, *] then [tests_of(folder), naming(%r{\b#{folder}/})]
    else nil
    end
  end

  def tests_of(folder) = @files.select { |file| file.start_with?("test/#{folder}/") }

  # Files of its folder name it in quotes; others with the folder before it, or a folder that it lies in by a path.
  def users_of(path)
    return [] if path.start_with?(CORPUS)

    *folders, name = path.split("/")
    file = /#{Regexp.escape(File.basename(name, ".*"))}(?:\.\w+)?["']/
    around = folders.each_index.drop(1).map { |last| folders[1..last].join("/") }
    beside, others = contents.keys.partition { |other| File.dirname(other) == File.dirname(path) }
    naming(%r{["'/]#{file}}, beside - [path]) +
      naming(%r{(?:\.\.|["'/]#{Regexp.escape(folders.last)})/#{file}|\.\./#{Regexp.union(around)}["']}, others)
  end

  def naming(pattern, paths = contents.keys) = paths.select { |path| contents[path].match?(pattern) }

  def contents
    @contents ||= Dir.glob("test/**/*", base: @root).filter_map do |path|
      file = File.join(@root, path)
      [path, File.binread(file)] if File.file?(file) && !path.start_with?(CORPUS)
    end.to_h
  end
end
