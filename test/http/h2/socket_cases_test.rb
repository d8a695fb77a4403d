# frozen_string_literal: true

# test: sanitize
# test: each selector

require "test_helper"
require "server/server_helpers"
require_relative "support/case_runner"

# Every case of cases.txt, sent to a server over a socket.
class H2SocketCasesTest < Minitest::Test
  include ServerHelpers
  include H2CaseRunner

  APP = ->(_env) { [200, { "content-type" => "text/plain" }, ["12345678"]] }

  CASES.map { |first, *| first[%r{\A= (\w+)/}, 1] }.uniq.each do |group|
    define_method("test_#{group}_cases") do
      serving(APP) do
        cases = CASES.select { |first, *| first.start_with?("= #{group}/") }

        assert_empty(cases.filter_map { |lines| failure_of(*lines) })
      end
    end
  end
end
