# frozen_string_literal: true

# test: long

require "test_helper"
require "heddle"
require_relative "support/fuzzed_responses"

# Some of the responses that test/fuzz/client sends for longer.
class ClientFuzzTest < Minitest::Test
  def test_each_request_has_its_own_response_or_an_error_of_the_client
    fuzzed = Heddle::TestHelpers::FuzzedResponses.new(1)
    seen = fuzzed.run(150)

    assert_operator seen.fetch("200"), :>, 10
    assert_operator seen.fetch("ProtocolError"), :>, 10
  ensure
    fuzzed&.close
  end
end
