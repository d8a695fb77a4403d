# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle"

# What happens to a batch whose confirmation is lost.
class PubSubPublisherTest < Minitest::Test
  Backend = Heddle::PubSub::Backend

  # A backend that stores the first batch, and cuts the connection in place of an answer. The next connection finds the
  # epoch that comes after +epochs+' first one.
  class ForgetfulBackend
    attr_reader :stored

    def initialize(*epochs)
      @epochs = epochs
      @stored = []
    end

    def connect = self
    def open = Backend::State.new(epoch: @epochs.first, count: 0, oldest: 1)
    def close = nil
    def to_s = "a backend"

    def publish(epoch, publisher, number, messages)
      raise Backend::EpochChangedError unless epoch == @epochs.first

      known = @stored.index([epoch, publisher, number]) and return known + 1
      @stored << [epoch, publisher, number]
      return @stored.size unless messages.any? { |_topic, data| data == "cut" }

      @epochs.shift if @epochs.size > 1
      raise Backend::LostError, "the connection is closed"
    end
  end

  def test_a_batch_whose_answer_was_lost_is_stored_once
    backend = ForgetfulBackend.new("one")

    assert_equal "one:1", Backend::Publisher.new(backend).publish("topic", "cut")
    assert_equal 1, backend.stored.size
  end

  def test_a_batch_whose_answer_was_lost_is_not_stored_again_in_another_epoch
    backend = ForgetfulBackend.new("one", "two")
    publisher = Backend::Publisher.new(backend)
    wrong = assert_raises(Heddle::PubSub::UnreachableError) { publisher.publish("topic", "cut") }

    assert_match(/message may or may not have been published: the backend's reply was lost, and the backend has/,
                 wrong.message)
    assert_equal 1, backend.stored.size
    assert_equal "two:2", publisher.publish("topic", "next")
  end

  # A backend that refuses the first connections.
  class StartingBackend < ForgetfulBackend
    def connect
      raise Backend::LostError, "it starts" if (@refused = (@refused || 0) + 1) <= 20

      super
    end
  end

  def test_pauses_before_the_next_attempt_are_short_and_differ
    publisher = Backend::Publisher.new(StartingBackend.new("one"))
    slept = []
    Backend::ReconnectPause.stub(:sleep, ->(seconds) { slept << seconds }) do
      assert_equal "one:1", publisher.publish("topic", "data")
    end

    assert_equal 20, slept.size
    assert_operator slept.uniq.size, :>, 1
    assert(slept.all? { |seconds| seconds.between?(0.025, 0.05) })
  end

  # A backend whose driver can't be loaded at first.
  class UnloadedBackend < ForgetfulBackend
    def connect
      raise LoadError, "no driver" unless (@asked = @asked.to_i + 1) > 1

      super
    end
  end

  def test_publisher_continues_after_an_error_outside_standard_error
    publisher = Backend::Publisher.new(UnloadedBackend.new("one"))
    error = assert_raises(Heddle::PubSub::UnreachableError) { publisher.publish("topic", "data") }

    assert_equal "the message may or may not have been published: no driver (LoadError)", error.message
    assert_equal "one:1", publisher.publish("topic", "data")
  end

  def test_ended_publisher_is_replaced
    backend = Backend.new("redis://127.0.0.1")
    backend.stub(:connect, ForgetfulBackend.new("one")) do
      assert_equal "one:1", backend.publish("topic", "data")
      thread = backend.instance_variable_get(:@publisher).instance_variable_get(:@thread)
      thread.kill.join

      assert_equal "one:2", backend.publish("topic", "data")
    end
  end
end
