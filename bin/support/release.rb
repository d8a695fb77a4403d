# frozen_string_literal: true

require "digest"
require "json"
require "open3"
require_relative "changed_code"

# The checklist of docs/releasing.md: each item of its section "Before" has a name, and a method here that looks.
class Release
  ROOT = File.expand_path("../..", __dir__)
  PAGE = "docs/releasing.md"
  # Files whose change needs no other run of the soak or the nightly. Nor does a comment's.
  PAPERS = %r{\A(?:\.ci/\w+\.json|docs/|README\.md|CHANGELOG\.md|[A-Z_]+\.md|sig/)}

  # @!attribute good [Boolean, nil] nil: a person looks
  Step = Data.define(:name, :good, :text) do
    def to_s = "#{{ true => "ok     ", false => "missing", nil => "by hand" }.fetch(good)}  #{name}: #{text}"
  end

  def initialize(root: ROOT, folder: File.join(root, "pkg"))
    @root = root
    @folder = folder
  end

  # @return [Array<Step>] in the order of the page
  def steps
    items.map { |name, text| public_send(name, text) }
  end

  # @return [Hash{Symbol => String}] names and texts of the page
  def items
    before = read(PAGE)[/^## Before\n(.*?)^## /m, 1]
    before.scan(/^\d+\. \*\*(\w+)\*\*: (.*?)(?=\n\d+\. |\s*\z)/m)
          .to_h { |name, text| [name.to_sym, text.gsub(/\s+/, " ")] }
  end

  def nightly(_)
    result = JSON.parse(read(".ci/nightly.json"))
    step(:nightly, result["result"] == "passed" && unchanged_since?(result["commit"]),
         "#{result["result"]} at #{result["commit"]} (.ci/nightly)")
  end

  def soak(_)
    report = JSON.parse(read(".ci/soak.json"))
    good = report["problems"].empty? && unchanged_since?(report["commit"])
    step(:soak, good, "#{report["hours"]} h at #{report["commit"]}, #{report["problems"].size} problems (bin/soak)")
  end

  def tree(_)
    step(:tree, git("status", "--porcelain").empty?, "nothing is changed that git tracks, and nothing is untracked")
  end

  def changelog(_)
    sections = read("CHANGELOG.md").scan(/^## \[([^\]]+)\]([^\n]*)\n(.*?)(?=^## |\z)/m)
    unreleased = sections.find { |name,| name == "Unreleased" }&.last.to_s.strip
    dated = sections.any? { |name, date,| name == version && date.match?(/\d{4}-\d\d-\d\d/) }
    step(:changelog, dated && unreleased.empty?, "a section #{version} with its date, and nothing under Unreleased")
  end

  def addresses(_)
    unset = read("heddle.gemspec").scan(/"(\w+_uri)" => nil/).flatten
    step(:addresses, unset.empty?, unset.empty? ? "set" : "heddle.gemspec lacks #{unset.join(", ")}")
  end

  def tag(_) = step(:tag, git("tag", "--list", "v#{version}").empty?, "v#{version} does not exist yet")

  def gems(_)
    lines = File.readlines(File.join(@folder, "SHA256SUMS"), chomp: true).map { |line| line.split("  ", 2) }
    good = lines.any? { |_, name| name == "heddle-#{version}.gem" } && lines.all? do |sum, name|
      Digest::SHA256.file(File.join(@folder, name)).hexdigest == sum
    end
    step(:gems, good, "#{lines.map(&:last).join(", ")} with their sums (bin/package --twice)")
  rescue Errno::ENOENT => e
    step(:gems, false, "#{e.message} (bin/package --twice)")
  end

  def ci(text) = step(:ci, nil, text)
  def figures(text) = step(:figures, nil, text)

  private

  def step(name, good, text) = Step.new(name:, good:, text:)

  def unchanged_since?(commit)
    files = ChangedCode.new(@root).since(commit.to_s)
    !files.nil? && files.all?(PAPERS)
  end

  def version = @version ||= read("lib/heddle/version.rb")[/VERSION = "([^"]+)"/, 1]

  def git(*) = Open3.capture2e("git", *, chdir: @root).first.strip

  def read(path) = File.read(File.join(@root, path))
end
