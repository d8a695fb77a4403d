# frozen_string_literal: true

# test: smoke

require "test_helper"
require_relative "run"

# A selection of what bin/hold does: another client is answered, and all is released. How fast, the nightly prints.
class HoldTest < Minitest::Test
  [Hold::Files, Hold::WebSockets, Hold::Messages, Hold::TLSHandshakes, Hold::HTTP2Streams,
   Hold::DNSConnections].each do |resource|
    define_method("test_another_client_is_answered_while_#{resource.label}_are_held") do
      result = Hold::Trial.new(resource, 50, samples: 3).run

      assert_predicate result, :answered?, result.to_s
      assert_predicate result, :released?, result.to_s
      assert_operator result.held.first, :>=, resource.new(nil, nil, 50).bound * 3 / 4, result.to_s
    end
  end

  def test_one_address_holds_a_quarter_of_the_connections
    result = Hold::Trial.new(Hold::SilentConnections, 1, samples: 3).run

    assert_equal [Hold::CONNECTIONS / 4] * 2, result.held
  end

  def test_each_resource_has_a_name
    assert_operator Hold::Resource.all.map(&:label).uniq.size, :>=, 20
  end
end
