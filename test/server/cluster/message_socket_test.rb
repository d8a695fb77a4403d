# frozen_string_literal: true

require "test_helper"
require "heddle/server"

class ClusterMessageSocketTest < Minitest::Test
  MessageSocket = Heddle::Server::Cluster::MessageSocket

  def setup
    @one, @other = MessageSocket.pair
  end

  def take = @other.wait("the master", self)

  # The log's.
  def event(name, **fields) = (@events ||= []) << [name, fields]

  def teardown
    [@one, @other].each(&:close)
  end

  def test_messages_come_whole_and_in_order
    assert_equal :wait, @other.receive
    assert @one.send_message("a", number: 1, list: ["é"])
    assert @one.send_message("b")

    message = MessageSocket::Message.new(what: "a", values: { "number" => 1, "list" => ["é"] }, io: nil)

    assert_equal message, @other.receive
    assert_equal "b", take.what
    assert_equal :wait, @other.receive
  end

  def test_text_that_is_not_utf8_is_sent_with_its_bytes_escaped
    assert @one.send_message("failed", message: "/caf\xE9: é", target: "/\xFF".b)
    assert_equal({ "message" => '/caf\xE9: é', "target" => '/\xFF' }, take.values)
  end

  def test_a_descriptor_goes_along
    reader, writer = IO.pipe
    @one.send_message("take this", io: writer)
    writer.close
    taken = take.io
    taken.write("x")
    taken.close

    assert_equal "x", reader.read
  ensure
    reader.close
  end

  def test_a_long_message_comes_whole_with_its_descriptor
    reader, writer = IO.pipe
    assert @one.send_message("a", io: writer, text: "x" * 100_000)
    writer.close
    message = take

    assert_equal "x" * 100_000, message.values["text"]
    message.io.close

    assert_predicate reader, :eof?
  ensure
    reader.close
  end

  def test_a_message_over_the_size_limit_is_not_sent
    refute @one.send_message("a", text: "é" * 70_000)
    assert @one.send_message("b")

    assert_equal "b", @other.receive.what
  end

  # What a stray write to the number of its descriptor would send.
  MALFORMED = ["not json", "[", "null", "7", "{}", "[]", '["answer"]', '["answer", null]', '["a", {}, 1]', "[1, {}]",
               "[\"a\", {\"b\": \"\xFF\"}]", "\0" * 100, "[" * 1_000].freeze

  def test_a_malformed_message_raises_and_the_next_one_is_received
    MALFORMED.each do |text|
      @one.io.send(text, 0)

      assert_raises(MessageSocket::MalformedError, text) { @other.receive }
    end
    @one.send_message("b")

    assert_equal "b", @other.receive.what
  end

  def test_wait_skips_malformed_messages_and_logs_the_first
    MALFORMED.each { |text| @one.io.send(text, 0) }
    @one.send_message("b")

    assert_equal "b", take.what
    reason = '8 bytes that begin with "not json"'

    assert_equal [[:malformed_message, { process: "the master", reason: }]], @events
  end

  def test_a_value_of_another_class_is_refused_by_name
    @one.send_message("spawned", slot: "1", pid: nil)
    message = @other.receive
    error = assert_raises(MessageSocket::MalformedError) { message.fetch("slot", Integer) }

    assert_equal "\"spawned\" without a valid \"slot\"", error.message
    assert_raises(MessageSocket::MalformedError) { message.fetch("pid", Integer) }
    assert_raises(MessageSocket::MalformedError) { message.fetch("none", String) }
    assert_equal "1", message.fetch("slot", String)
  end

  def test_a_closed_peer_is_detected_by_receive_and_send
    @one.close

    assert_nil @other.receive
    refute @other.send_message("hello?")
  end

  def test_a_peer_that_closed_before_it_had_read_everything_is_no_failure
    @other.send_message("unread")
    @one.close

    assert_nil take
    assert_nil @other.failure
  end

  def test_why_messages_can_be_read_no_more_is_known
    @other.io.close

    assert_nil take
    assert_kind_of IOError, @other.failure
  end

  def test_sending_to_a_peer_that_does_not_read_returns_false
    10_000.times { break unless @one.send_message("x" * 1_000) }

    refute @one.send_message("x" * 1_000)
  end
end
