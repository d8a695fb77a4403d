# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle/pubsub"
require "heddle/cable/history"

# A client of AnyCable's protocol may ask for anything: nothing that it sends may raise.
class CableHistoryTest < Minitest::Test
  Stream = Struct.new(:topic)
  Held = Struct.new(:stream, :position)

  # Notes where streams begin.
  class Topics
    attr_reader :positions

    def begin_stream(_stream, position) = (@positions ||= []) << position
  end

  def replay(wish)
    answers = []
    topics = Topics.new
    Heddle::Cable::History.new(wish) { |type| answers << type }.replay(topics, [Held.new(Stream.new("a"), "here")])
    [topics.positions, answers]
  end

  def test_an_invalid_time_is_ignored
    [-(10**30), -1, -(10**400), 10**400, 1.5, "now", nil].each do |since|
      assert_equal [["here"], ["confirm_history"]], replay({ "since" => since }), since.inspect
    end
  end

  def test_streams_begin_after_the_messages_that_are_older_than_the_time
    Heddle::PubSub::History.open
    position = Heddle::PubSub::History.position("a")

    assert_equal [[position], ["confirm_history"]], replay({ "since" => Time.now.to_i })
  end
end
