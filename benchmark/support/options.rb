# frozen_string_literal: true

require "optparse"

module Bench
  # What the command line asks for.
  class Options
    DEFAULT_ROUNDS = 5

    attr_reader :rounds, :only, :contestants, :report, :json

    # @param arguments [Array<String>]
    # @raise [OptionParser::ParseError]
    def initialize(arguments, program: "bin/bench")
      @rounds = nil
      @only = @contestants = nil
      @quick = @publish = @list = @raise_map_count = false
      @yjit = true
      parser(program).parse!(arguments.dup)
      @rounds ||= @quick ? 1 : DEFAULT_ROUNDS
    end

    # @return [Boolean] small sizes, one round, and of each row one contestant of Heddle and one other unless some are
    #   named: whether everything runs, not how fast
    def quick? = @quick

    # @return [Boolean] whether the figures go to docs/benchmarks
    def publish? = @publish

    # @return [Boolean]
    def list? = @list

    # @return [Boolean]
    def yjit? = @yjit

    # @return [Boolean]
    def raise_map_count? = @raise_map_count

    private

    def parser(program)
      OptionParser.new("Usage: #{program} [options]") do |parser|
        selection(parser)
        parser.on("--rounds N", Integer, "rounds of every contestant (default: #{DEFAULT_ROUNDS})") do |n|
          @rounds = positive(n)
        end
        parser.on("--quick", "small sizes, one round, two contestants a row: a smoke run") { @quick = true }
        parser.on("--no-yjit", "without YJIT, where this Ruby has it") { @yjit = false }
        parser.on("--raise-map-count", "run the sleepers a second time with vm.max_map_count raised, as root;",
                  "it is restored afterwards") { @raise_map_count = true }
        output(parser)
      end
    end

    def selection(parser)
      parser.on("--only ROWS", Array, "these rows only, by comma") { |rows| @only = rows }
      parser.on("--contestants NAMES", Array, "these contestants only, by comma") { |names| @contestants = names }
      parser.on("--list", "print the names of rows and contestants") { @list = true }
    end

    def output(parser)
      parser.on("--publish", "write the table and the chart to docs/benchmarks") { @publish = true }
      parser.on("--json FILE", "store the result in this file, beside the rows of earlier runs") { |file| @json = file }
      parser.on("--report FILE", "render a finished run's JSON again, run nothing") { |file| @report = file }
    end

    def positive(number)
      raise OptionParser::InvalidArgument, "must be at least 1" unless number.positive?

      number
    end
  end
end
