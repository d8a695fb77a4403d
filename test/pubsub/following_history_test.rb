# frozen_string_literal: true

require "test_helper"
require "heddle"

# A history that follows a backend: the backend gives epochs and offsets. In a file of its own: the history of a process
# stays one that follows.
class FollowingHistoryTest < Minitest::Test
  PubSub = Heddle::PubSub
  EPOCHS = %w[aaaaaaaaaaaa bbbbbbbbbbbb].freeze

  def setup
    PubSub::History.open(1 << 20, 100, 300)
  end

  def in_loop(&)
    Heddle.run(selector: selector_under_test) { Heddle.timeout(60, &) }
  end

  def subscription(topic, since: nil) = PubSub::Subscription.new(Fiber.scheduler, topic, since)

  # A state that no other test has left: the offset of the last message.
  def begin_anew
    epoch, count, follows = PubSub::History.state
    @epoch = EPOCHS.find { |one| one != epoch } || epoch
    PubSub::History.begin(@epoch, follows ? count + 100 : 7)
    PubSub::History.state[1]
  end

  def append(offset, topic, data) = PubSub::History.append(@epoch, offset, topic, data)

  def test_messages_have_the_offsets_that_the_backend_has_given
    last = begin_anew
    in_loop do
      one = subscription("a", since: "#{@epoch}:#{last}")

      assert_equal %i[appended appended known gap], [[1, "x"], [2, "y"], [2, "y"], [4, "z"]].map { |offset, data|
        append(last + offset, "a", data)
      }
      assert_equal [["x", "#{@epoch}:#{last + 1}"], ["y", "#{@epoch}:#{last + 2}"]], Array.new(2) { one.take }
    end
  end

  def test_a_new_epoch_is_a_reset_for_all
    last = begin_anew
    in_loop do
      subscriptions = Array.new(3) { subscription("a") }
      append(last + 1, "a", "old")
      last = begin_anew
      append(last + 1, "a", "new")
      append(last + 2, "a", "newer")

      assert_equal [[[nil, "#{@epoch}:#{last + 2}"]]], subscriptions.map { |one| [one.take] }.uniq
      append(last + 3, "a", "newest")
      assert_equal [["newest", "#{@epoch}:#{last + 3}"]], subscriptions.map(&:take).uniq
    end
  end

  # Some have been given the message, the others get only the reset.
  def test_a_new_epoch_while_a_message_is_given_to_many_is_a_reset_for_all
    last = begin_anew
    in_loop do
      all = Array.new(1_500) { subscription("a") }
      append(last + 1, "a", "old")
      sleep 0 while PubSub::Subscription.statistics(Fiber.scheduler)[:delivered].zero?
      given, waiting = all.partition { |one| one.position == "#{@epoch}:#{last + 1}" }
      PubSub::History.begin(EPOCHS.find { |one| one != @epoch }, 0)

      assert_equal [["old", nil]], given.map { |one| Array.new(2) { one.take.first } }.uniq
      assert_equal [nil], waiting.map { |one| one.take.first }.uniq
    end
  end

  def test_a_position_keeps_its_epoch_until_the_reset_has_come
    last = begin_anew
    in_loop do
      one = subscription("a")
      append(last + 1, "a", "old")
      sleep 0
      given = "#{@epoch}:#{last + 1}"
      last = begin_anew
      sleep 0

      assert_equal ["old", given], one.take
      assert_equal [nil, "#{@epoch}:#{last}"], one.take
      assert_equal "#{@epoch}:#{last}", one.position
    end
  end

  def test_a_position_of_an_earlier_epoch_brings_a_reset
    last = begin_anew
    append(last + 1, "a", "x")
    old = "#{@epoch}:#{last}"
    last = begin_anew
    in_loop { assert_equal [nil, "#{@epoch}:#{last}"], subscription("a", since: old).take }
  end

  # Another machine may have given messages that this one gets next.
  def test_a_position_ahead_of_the_history_is_waited_for
    last = begin_anew
    in_loop do
      one = subscription("a", since: "#{@epoch}:#{last + 2}")
      3.times { |i| append(last + 1 + i, "a", i.to_s) }

      assert_equal ["2", "#{@epoch}:#{last + 3}"], one.take
    end
  end

  def test_publishing_past_the_backend_raises
    begin_anew

    assert_raises(Errno::EPERM) { PubSub::History.publish("a", "x") }
    assert_match(/an epoch has 12/, assert_raises(ArgumentError) { PubSub::History.begin("short", 1) }.message)
    assert_equal :too_large, append(PubSub::History.state[1] + 1, "a", "x" * 600_000)
    @epoch = "cccccccccccc"
    assert_equal :stale, append(1, "a", "x")
  end
end
