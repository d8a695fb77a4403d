# frozen_string_literal: true

require "test_helper"
require "heddle"

# Many receivers of one topic in a loop.
class PubSubReadersTest < Minitest::Test
  PATIENCE = 60

  def setup
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    @topic = "readers #{name}"
    @got = Thread::Queue.new
  end

  def readers = Heddle::PubSub::Readers.of(Fiber.scheduler)

  # @return [#call] a receiver that notes what it is given under this name
  def receiver(name) = ->(message) { @got << [name, message.data, message.topic] }

  def publish(data) = Heddle::PubSub.publish(@topic, data)

  def got(count) = Array.new(count) { @got.pop(timeout: PATIENCE) }

  def test_one_task_reads_a_topic_for_all_readers
    Heddle.run do
      receivers = %w[a b].map { |name| receiver(name).tap { |one| readers.subscribe(@topic, one) } }
      publish("1")

      assert_equal [["a", "1", @topic], ["b", "1", @topic]], got(2)
      assert_equal 1, Heddle.task_tree.to_s.scan("topic #{@topic}").size
      readers.unsubscribe(@topic, receivers.first)
      publish("2")

      assert_equal [["b", "2", @topic]], got(1)
    end
  end

  def test_the_last_that_leaves_ends_the_subscription
    Heddle.run do
      one = receiver("a")
      readers.subscribe(@topic, one)
      readers.unsubscribe(@topic, one)
      readers.unsubscribe(@topic, one)
      publish("nobody")
      readers.subscribe(@topic, receiver("b"))
      publish("somebody")

      assert_equal [["b", "somebody", @topic]], got(1)
    end
  end

  def test_a_receiver_may_leave_while_messages_are_given_out
    Heddle.run do
      leaving = lambda do |message|
        @got << [message.data]
        readers.unsubscribe(@topic, leaving)
      end
      readers.subscribe(@topic, leaving)
      readers.subscribe(@topic, receiver("b"))
      %w[1 2].each { |data| publish(data) }

      assert_equal [["1"], ["b", "1", @topic], ["b", "2", @topic]], got(3)
    end
  end
end
