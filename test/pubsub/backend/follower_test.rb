# frozen_string_literal: true

require "test_helper"
require "heddle"

# How much a follower reads at once, since the sizes of a backend's messages are not known beforehand, and when it
# connects again.
class PubSubFollowerTest < Minitest::Test
  Backend = Heddle::PubSub::Backend

  # A backend with messages of the same size.
  class StoredBackend
    # @return [Array<Integer>] the messages that each read has asked for
    attr_reader :reads

    def initialize(count, size)
      @epoch = Backend.new_epoch
      @count = count
      @data = "x" * size
      @reads = []
    end

    def connect = self
    def open = Backend::State.new(epoch: @epoch, count: @count, oldest: 1)
    def close = nil
    def to_s = "a backend"

    def read(after, most, _wait, _counted)
      sleep if after == @count # nothing more comes
      @reads << most
      (1..[most, @count - after].min).map do |place|
        Backend::Stored.new(epoch: @epoch, offset: after + place, topic: "room", data: @data)
      end
    end
  end

  # @return [Array<Integer>]
  def reads_of(count, size)
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    backend = StoredBackend.new(count, size)

    assert Backend::Follower.new(backend, ->(text) { flunk text }).wait(60)
    backend.reads
  end

  # A backend that refuses the first connections.
  class StartingBackend < StoredBackend
    def connect
      raise Backend::LostError, "it starts" if (@refused = (@refused || 0) + 1) <= 10

      super
    end
  end

  def test_pauses_before_the_next_attempt_double_up_to_ten_seconds_and_differ
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    slept = []
    Backend::ReconnectPause.stub(:sleep, ->(seconds) { slept << seconds }) do
      assert Backend::Follower.new(StartingBackend.new(1, 10), ->(*, **) {}).wait(60)
    end

    assert_equal 10, slept.size
    slept.zip([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]) do |seconds, longest|
      assert_includes (longest / 2.0)..longest, seconds
    end
    refute_equal slept[-1], slept[-2]
  end

  def test_small_messages_are_read_by_hundreds
    assert_equal [1, 4, 16, 64, 256, 500, 500], reads_of(1200, 10)
  end

  def test_large_messages_are_read_a_few_at_a_time
    assert_equal [1, 4, 8, 8, 8], reads_of(29, 1 << 20)
  end

  # A backend whose driver can't be loaded at first.
  class UnloadedBackend < StoredBackend
    def connect
      raise LoadError, "no driver" unless (@asked = @asked.to_i + 1) > 1

      super
    end
  end

  def test_follower_continues_after_an_error_outside_standard_error
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    reports = []
    report = ->(name, **fields) { reports << [name, fields[:reason]] }
    follower = Backend::Follower.new(UnloadedBackend.new(1, 10), report)

    assert follower.wait(60)
    assert_equal [:pubsub_unreachable, "no driver"], reports.first
  end
end
