# frozen_string_literal: true

require "test_helper"
require "heddle/server"

class ClusterChannelTest < Minitest::Test
  Channel = Heddle::Server::Cluster::Channel

  def setup
    @one, @other = Channel.pair
  end

  def teardown
    [@one, @other].each(&:close)
  end

  def test_messages_come_whole_and_in_order
    assert_equal :wait, @other.hear
    assert @one.say("a", number: 1, list: ["é"])
    assert @one.say("b")

    assert_equal Channel::Message.new(what: "a", values: { "number" => 1, "list" => ["é"] }, io: nil), @other.hear
    assert_equal "b", @other.wait.what
    assert_equal :wait, @other.hear
  end

  def test_a_descriptor_goes_along
    reader, writer = IO.pipe
    @one.say("take this", io: writer)
    writer.close
    taken = @other.wait.io
    taken.write("x")
    taken.close

    assert_equal "x", reader.read
  ensure
    reader.close
  end

  def test_what_is_longer_than_the_other_end_takes_is_not_said
    refute @one.say("a", text: "é" * 70_000)
    assert @one.say("b")

    assert_equal "b", @other.hear.what
  end

  # What a stray write to the number of its descriptor would send.
  MALFORMED = ["not json", "[", "null", "7", "{}", "[]", '["answer"]', '["answer", null]', '["a", {}, 1]', "[1, {}]",
               "[\"a\", {\"b\": \"\xFF\"}]", "\0" * 100, "[" * 1_000].freeze

  def test_what_is_no_message_is_refused_and_the_next_one_is_heard
    MALFORMED.each do |text|
      @one.io.send(text, 0)

      assert_raises(Channel::Malformed, text) { @other.hear }
    end
    @one.say("b")

    assert_equal "b", @other.hear.what
  end

  def test_what_is_no_message_is_passed_over_by_who_waits
    MALFORMED.each { |text| @one.io.send(text, 0) }
    @one.say("b")

    assert_equal "b", @other.wait.what
  end

  def test_a_value_of_another_class_is_refused_by_name
    @one.say("spawned", slot: "1", pid: nil)
    message = @other.hear
    error = assert_raises(Channel::Malformed) { message.fetch("slot", Integer) }

    assert_equal "\"spawned\" with String as \"slot\"", error.message
    assert_raises(Channel::Malformed) { message.fetch("pid", Integer) }
    assert_raises(Channel::Malformed) { message.fetch("none", String) }
    assert_equal "1", message.fetch("slot", String)
  end

  def test_nobody_is_there_any_more
    @one.close

    assert_nil @other.hear
    refute @other.say("hello?")
  end

  def test_who_does_not_hear_holds_up_nobody
    10_000.times { break unless @one.say("x" * 1_000) }

    refute @one.say("x" * 1_000)
  end
end
