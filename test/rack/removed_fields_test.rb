# frozen_string_literal: true

# test: sanitize

require "http/h2/support/conversations"
require "heddle/net/networks"
require "heddle/rack"

# The report that fields of a request were removed, which comes only once in a process.
class RemovedFieldsTest < Minitest::Test
  include H2Conversations

  # A log whose lines wait for a slow reader.
  class SlowLog
    attr_reader :names, :reader

    def initialize
      @names = []
      @reader = Thread::Queue.new
    end

    def event(name, **)
      @names << name
      @reader.pop
    end
  end

  def test_client_may_leave_while_the_log_waits
    log = SlowLog.new
    builder = Heddle::Rack::EnvBuilder.new($stderr, Heddle::Net::Networks.new([]))
    env = nil
    build = ->(exchange) { Heddle::Events.reporting_to(log) { env = Heddle::Rack.env(builder, exchange, []) } }
    converse(build) do |conversation|
      conversation.say(frames("HEADERS es+eh 1 get a_b=c x-forwarded-proto=https"))
      conversation.await { log.names.any? }
      conversation.vanish
      conversation.await { !conversation.open? }
      log.reader.close
      conversation.await { env }
    end

    assert_equal %i[underscore_removed forwarding_removed], log.names
    assert_empty env.keys.grep(/A_B|FORWARDED/)
  end
end
