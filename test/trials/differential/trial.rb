# frozen_string_literal: true

require "rbconfig"
require_relative "comparison"
require_relative "page"
require_relative "servers"
require_relative "sources"
require_relative "way_run"

module Trials
  # One suite in several ways, and what is said of it.
  class Trial
    # @param ways [Array<String>] `plain` first
    # @param ruby [String] for suites that are not of one Ruby
    def initialize(suite, ways:, seed: 1, ruby: RbConfig.ruby, out: $stdout)
      @suite = suite
      @ways = ways
      @seed = seed
      @ruby = suite.ruby ? "ruby#{suite.ruby}" : ruby
      @out = out
    end

    # @param write [Boolean] into docs/gems.md
    # @return [Boolean, nil] nothing differs but what an exclusion names; nil: it can't be had here
    def run(write: false)
      others = @ways.include?(WayRun::OTHER) ? ["async 2.46.0"] : []
      comparison = Comparison.new(@suite, run_ways(Sources.new(@suite, ruby: @ruby, others:).place))
      return say("no example was run: see tmp/trials/#{@suite.name}") if comparison.examples.zero?

      say_passing(comparison) if @suite.passing_only?
      comparison.unexpected.each { |difference| tell(*difference) }
      Page.new.update(comparison, ruby: @ruby, seed: @seed) if write
      comparison.unexpected.empty?
    rescue Sources::Missing => e
      @out.puts e.message
    end

    private

    def say(text)
      @out.puts "#{@suite.name}: #{text}"
      false
    end

    def say_passing(comparison)
      (@ways - ["plain"]).each do |way|
        @out.puts "#{@suite.name.ljust(12)} #{way.ljust(9)} #{comparison.passing(way)} of " \
                  "#{comparison.passing("plain")} examples that pass on plain Ruby pass here"
      end
      comparison.expected.each { |reason, examples| @out.puts "  excluded: #{examples.join(", ")}: #{reason}" }
    end

    def run_ways(place)
      Servers.with(@suite.server) do |environment|
        place = place.merge(environment: place.fetch(:environment).merge(environment))
        @ways.to_h { |way| [way, run_way(way, place)] }
      end
    end

    def run_way(way, place)
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      run = WayRun.new(@suite, way, place:, ruby: @ruby, seed: @seed,
                                    logs: File.join(Suite::ROOT, "tmp/trials", @suite.name))
      tally = run.run.values.map { |result| result[/\A\w+/] }.tally.map { |result, number| "#{number} #{result}" }
      seconds = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started).round(1)
      @out.puts "#{@suite.name.ljust(12)} #{way.ljust(9)} #{run.results.size} examples in #{seconds} s: " \
                "#{tally.join(", ")}"
      @out.flush
      run
    end

    def tell(way, example, there, here, message)
      @out.puts "  #{way}: #{example}: #{there.inspect} on plain Ruby, here #{here.inspect}"
      @out.puts "    #{message.lines.first(2).map(&:strip).join(" ")}" unless message.empty?
    end
  end
end
