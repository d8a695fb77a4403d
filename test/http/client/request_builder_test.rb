# frozen_string_literal: true

require "test_helper"
require_relative "support/client_case"

# Requests as they are made for threads and fibers that share a client.
class RequestBuilderTest < ClientCase
  # Somebody else makes a request while this one's fields are made.
  Interrupting = Struct.new(:name, :meanwhile) do
    def authority
      interruption = meanwhile
      self.meanwhile = nil
      interruption&.call
      name
    end

    def proxy_fields = []
  end

  # Of the paths' origins.
  Paths = Struct.new(:origins) do
    def find(path) = [origins.fetch(path), path, nil]
  end

  def test_a_request_that_others_interrupt_has_its_own_host_and_so_have_the_next_ones
    one = Interrupting.new("one.test")
    two = Interrupting.new("two.test")
    builder = Client::RequestBuilder.new(Paths.new({ "/1" => one, "/2" => two }), {})
    hosts = lambda do |*paths|
      paths.map { |path| builder.build("GET", path, nil, nil, nil).fields.lines[/Host: (.*)\r/, 1] }
    end
    inner = nil
    one.meanwhile = -> { inner = hosts.call("/1", "/2") }

    assert_equal %w[one.test two.test two.test one.test], hosts.call("/1", "/2", "/2", "/1")
    assert_equal %w[one.test two.test], inner
  end
end
