# frozen_string_literal: true

require_relative "../http/server_suite"
require_relative "../http/rows/http_row"
require_relative "../http/rows/load"
require_relative "application"
require_relative "contestant"
require_relative "rows"

module Bench
  # The ways to run Heddle beside each other, with four requests at a time.
  class ModesSuite < HTTP::ServerSuite
    def name = "modes"

    def title = "Ways to run Heddle, four requests at a time"

    def rows = @rows ||= Modes::Rows.all

    def contestants = @contestants ||= [*Modes::Contestant.all, Modes::Puma.new]

    def reference = "single"
  end
end
