# frozen_string_literal: true

# Which test files depend on changed files. Of other tests, examples and benchmarks those depend that are about them; on
# anything else, all.
class ConcernedTests
  # @param root [String] the checkout
  # @param files [Array<String>] the test files that there are, relative to the root
  def initialize(root, files)
    @root = root
    @files = files
  end

  # @param changed [Array<String>] relative to the root
  # @return [Array<String>, nil] nil when each test may depend on them
  def call(changed)
    found = changed.map { |path| concerned_by(path) }
    found.flatten.uniq & @files if found.all?
  end

  private

  def concerned_by(path)
    case path.split("/")
    in [*, /_test\.rb\z/] then [path]
    in ["test", "support", *, name] then users_of("support/#{name.delete_suffix(".rb")}")
    in ["test", folder, _, *] then @files.grep(%r{\Atest/#{Regexp.escape(folder)}/})
    in ["examples" | "benchmark" => folder, *] then @files.grep(%r{\Atest/#{folder}/})
    else nil
    end
  end

  # What requires a file of test/support, or lies in a folder where something does; nil where test_helper does.
  def users_of(name)
    paths = ["test/test_helper.rb", *Dir.glob("test/**/*.rb", base: @root)]
    required = %r{["'][./]*#{Regexp.escape(name)}["']}
    users = paths.select { |path| File.read(File.join(@root, path)).match?(required) }
    return if users.include?("test/test_helper.rb")

    found = users.map { |path| path.end_with?("_test.rb") ? [path] : concerned_by(path) }
    found.flatten if found.all?
  end
end
