# frozen_string_literal: true

require_relative "../http/contestant"
require_relative "../http/server"
require_relative "../http/rows/http_row"
require_relative "../http/rows/load"
require_relative "application"
require_relative "contestant"
require_relative "rows"

module Bench
  # The ways to run Heddle beside each other, with four requests at a time.
  class ModesSuite < Suite
    def name = "modes"

    def title = "Ways to run Heddle, four requests at a time"

    def rows = @rows ||= Modes::Rows.all

    def contestants = @contestants ||= [*Modes::Contestant.all, Modes::Ractors.new, Modes::Puma.new]

    def reference = "single"

    def legend = ""

    # @see HttpSuite#probe
    def probe(contestant, ruby_flags:)
      version = contestant.version
      HTTP::Server.run(contestant, ruby_flags:) { { version: } }
    rescue HTTP::Contestant::Unavailable => e
      { failure: e.message }
    end

    # @see HttpSuite#sample
    def sample(row, contestant, size, ruby_flags:)
      HTTP::Server.run(contestant, ruby_flags:) { |server| row.measure(server, size) }
    end
  end
end
