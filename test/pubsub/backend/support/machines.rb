# frozen_string_literal: true

require "test_helper"
require "heddle"
require_relative "pubsub_machine"

# What the tests of each backend have in common: processes that stand for machines.
module Machines
  def teardown
    @machines&.each(&:stop)
    @backend_server&.stop
    super
  end

  def machine(topic = "room", since = nil)
    PubSubMachine.new(url, topic, since).tap { |one| (@machines ||= []) << one }
  end

  def offset(position) = Integer(position[/\d+\z/])

  def assert_in_order(positions)
    assert_equal positions.map { |one| offset(one) }.sort.uniq, positions.map { |one| offset(one) }
    assert_equal 1, positions.map { |one| one[/\A[^:]+/] }.uniq.size
  end
end

# What every backend promises; the class starts a server and has `url`, `cut_connections` and `crash`.
module BackendPromises
  include Machines

  def test_machines_share_topics_and_positions
    first, second = Array.new(2) { machine }
    positions = %w[a b c].map { |data| first.publish(data) }
    positions << second.publish("d")

    assert_equal [%w[a b c d].zip(positions)], [first, second].map { |one| Array.new(4) { one.message } }.uniq
    assert_in_order positions
  end

  def test_a_machine_that_starts_later_has_what_was_published_before
    first = machine
    position = first.publish("known")
    first.publish("other", "another topic")
    missed = %w[a b].map { |data| [data, first.publish(data)] }
    later = machine("room", position)

    assert_equal missed, Array.new(2) { later.message }
    assert_equal missed.last.last, later.position
  end

  def test_messages_of_all_sizes_and_bytes_arrive
    one = machine
    sizes = [0, 1, 5_000, 7_000, 8_000, 20_000, 1_000_000]
    sizes.each { |size| one.publish("ä\n\u0000" * (size / 4)) }

    assert_equal(sizes.map { |size| size / 4 * 4 }, sizes.map { one.message.first.bytesize })
  end

  # What could end a command or a statement, and what is no text; in a notification and in the table.
  def test_topics_and_data_may_have_any_bytes
    topics = ["a\0b", "'; DROP TABLE heddle_pubsub_messages; --", "\xff\xfe".b, "\xff", "$1{}\\x00\"", "", "x" * 1024,
              "\r\n*1\r\n$8\r\nFLUSHALL\r\n", "grüße", "ü".encode(Encoding::UTF_16LE)]
    connection = Heddle::PubSub::Backend.new(url).connect
    state = connection.open
    connection.read(state.count, 500, 0.01, state.count)
    [1, 3_000].each_with_index do |times, i|
      messages = topics.map { |topic| [topic, topic * times] }
      first = connection.publish(state.epoch, "f" * 16, i, messages)
      found = connection.read(first - 1, 500, 5, first - 1)

      assert_equal(messages.map { |one| one.map(&:b) }, found.map { |one| [one.topic.b, one.data.b] })
    end
  ensure
    connection&.close
  end

  def test_a_position_of_another_backend_brings_a_reset
    one = machine
    last = one.publish("x")
    other = machine("room", "aaaaaaaaaaaa:1")

    assert_equal [nil, last], other.message
  end

  # The publisher sends what was not confirmed once more, and the backend knows it again.
  def test_no_message_is_lost_or_doubled_when_connections_break
    subscriber, publisher = Array.new(2) { machine }
    numbers = (1..1000).map(&:to_s)
    positions = numbers.map do |number|
      cut_connections if %w[200 500 800].include?(number)
      publisher.publish(number)
    end

    assert_equal numbers.zip(positions), subscriber.messages_until("1000")
    assert_in_order positions
  end

  def test_messages_confirmed_by_a_durable_backend_survive_its_crash
    subscriber, publisher = Array.new(2) { machine }
    crashed = Thread.new { crash }
    confirmed = []
    (1..200).each do |number|
      what, *, position = publisher.try(number.to_s)
      confirmed << [number.to_s, position] if what == "published"
      crashed.join if number == 100
    end
    last = subscriber.messages_until("200")
    assert_empty confirmed - last
    assert_in_order last.map(&:last)
  end

  def test_publishing_raises_while_there_is_no_backend
    one = machine
    one.publish("x")
    @backend_server.stop
    what, reason = one.try("y")

    assert_equal "refused", what
    assert_match(/the message may or may not have been published/, reason)
  end
end
