# frozen_string_literal: true

require "fileutils"
require "net/http"
require "rbconfig"
require "yaml"
$LOAD_PATH.unshift(File.expand_path("../..", __dir__)) # of the tests' support
require "support/served_process"

module Trials
  # Shows what becomes of state that gems keep by thread: twenty requests at once, each with a value of its own.
  class State
    ROOT = File.expand_path("../../..", __dir__)
    PAGE = File.join(ROOT, "docs/gems.md")
    MARKS = ["<!-- state: written by `test/trials/state/run --write` -->\n", "<!-- end of state -->"].freeze
    HEAD = "| gem | line that keeps state by thread | requests that saw their own value |\n| - | - | - |\n"
    GEMS = YAML.load_file(File.join(__dir__, "gems.yml")).freeze
    REQUESTS = 20
    ABI = RbConfig::CONFIG["ruby_version"]
    HOME = File.join(ROOT, "tmp/trials/matrix", ABI)
    BUNDLE = File.join(ROOT, "vendor/bundle/ruby", ABI)
    private_constant :HOME, :BUNDLE

    # The results of a line: how many of twenty requests saw their own value, and whether nothing was left from others.
    Result = Data.define(:right, :fresh, :errors) do
      def ok? = right == REQUESTS && fresh
      def to_s = ok? ? "#{right} of #{REQUESTS}" : "#{right} of #{REQUESTS}#{", left from another" unless fresh}"
    end

    # @param names [Array<String>] of gems; empty: all
    # @param install [Boolean] whether missing gems are installed into tmp/
    def initialize(names = [], install: true)
      @rows = GEMS.select { |row| names.empty? || names.include?(row["gem"]) }
      @install = install
      @environment = { "GEM_HOME" => HOME, "GEM_PATH" => "#{HOME}:#{BUNDLE}", "RUBYOPT" => nil,
                       "RACK_ENV" => "production" }
    end

    # @yieldparam row [Hash]
    # @yieldparam results [Array<Result>] one for each line
    # @return [Hash{String => Array}] version and results of each gem
    def run
      @rows.to_h do |row|
        version = install(row["gem"])
        results = version && row["lines"] ? try(row) : []
        yield row, results if block_given?
        [row["gem"], [version, results]]
      end
    end

    # Puts the rows into the page.
    # @return [void]
    def self.write(found)
      head, rest = File.read(PAGE).split(MARKS.first, 2)
      _, after = rest.split(MARKS.last, 2)
      table = GEMS.flat_map { |row| lines_of(row, *found.fetch(row["gem"])) }
      File.write(PAGE, [head, MARKS.first, HEAD, *table, MARKS.last, after].join)
    end

    def self.lines_of(row, version, results)
      name = "#{row["gem"]} #{version}"
      elsewhere = row["tested_by"] ? "see [its test](../#{row["tested_by"]})" : "none"
      return ["| #{name} | #{elsewhere} | |\n"] unless row["lines"]

      row["lines"].zip(results).map.with_index do |(line, result), index|
        text = "`#{line["line"].gsub("|", "\\|")}`#{"; #{line["note"]}" if line["note"]}"
        "| #{name if index.zero?} | #{text} | #{result} |\n"
      end
    end
    private_class_method :lines_of

    private

    # @return [String, nil] its version
    def install(name)
      find = ["-e", "print Gem::Specification.find_all_by_name(ARGV[0]).map(&:version).max", name]
      version = IO.popen([@environment, RbConfig.ruby, *find], &:read)
      return version unless version.empty?
      return unless @install

      system(@environment, RbConfig.ruby, "-S", "gem", "install", "--no-document", "--conservative", name, out: File::NULL)
      IO.popen([@environment, RbConfig.ruby, *find], &:read)
    end

    def try(row)
      flags = %w[-p 0 -b 127.0.0.1 -w 1 --reserve-workers 0 --no-access-log --control off]
      served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", File.join(__dir__, "config.ru"), *flags],
                                 environment: { **@environment, "STATE_GEM" => row["gem"] })
      row["lines"].each_index.map { |index| ask(served, index) }
    rescue RuntimeError => e
      row["lines"].map { Result.new(right: 0, fresh: false, errors: e.message) }
    ensure
      served&.stop
    end

    # Twice, so that each fiber has served a request before.
    def ask(served, index)
      rounds = Array.new(2) { ask_at_once(served, index) }
      right = rounds.map { |seen| seen.each_with_index.count { |(_, own), number| own == "tenant#{number}" } }.min
      before, after = rounds.flatten(1).transpose
      wrong = after.grep_v(/\Atenant\d+\z/).uniq
      Result.new(right:, fresh: before.uniq.size == 1, errors: [*wrong, served.output].join("\n"))
    end

    # @return [Array<Array(String, String)>] what each request saw before its program, and at its end
    def ask_at_once(served, index)
      threads = Array.new(REQUESTS) { |number| Thread.new { served.get("/#{index}?#{number}").body } }
      threads.map { |thread| thread.value.split("\n", 2).then { |before, after| [before, after.to_s] } }
    end
  end
end
