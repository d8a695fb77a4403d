# frozen_string_literal: true

require "test_helper"
require "json"
require "support/web_socket_client"
require_relative "served_example"
require_relative "support/page_policy"

# examples/chat, by clients that speak WebSocket frame by frame.
class ChatExampleTest < Minitest::Test
  include PagePolicy

  def setup
    @served = ServedExample.new("chat")
  end

  def teardown
    @clients&.each { |client| client.io.close }
    @served.stop
  end

  def join(query = "", **)
    socket = TCPSocket.new(@served.uri.host, @served.uri.port)
    WebSocketClient.new(socket, "/room#{query}", **).tap { |client| (@clients ||= []) << client }
  end

  def say(client, text, name: "Ann") = client.text({ name:, text: }.to_json)

  # @return [Hash] the next message of the room
  def hear(client) = JSON.parse(client.message)

  # @return [String] what the next message says
  def text(client) = JSON.parse(hear(client).fetch("data")).fetch("text")

  def test_a_message_reaches_every_client
    first, second = Array.new(2) { join }
    say(first, "<b>grüße</b>", name: "Björn")
    heard = [first, second].map { |client| hear(client) }

    assert_equal({ "name" => "Björn", "text" => "<b>grüße</b>" }, JSON.parse(heard.first["data"]))
    assert_equal heard.first, heard.last
  end

  def test_a_late_comer_gets_the_last_thirty_messages
    first = join
    35.times { |number| say(first, number.to_s) }
    35.times { hear(first) }
    late = join

    assert_equal (5..34).map(&:to_s), Array.new(30) { text(late) }
    say(late, "and on")
    assert_equal "and on", text(late)
  end

  def test_a_reconnecting_client_gets_missed_messages_exactly_once
    first = join
    %w[one two three].each { |word| say(first, word) }
    position = hear(first)["position"]
    back = join("?since=#{position}")

    assert_equal %w[two three], Array.new(2) { text(back) }
    assert hear(join("?since=unknown:1"))["reset"]
  end

  def test_an_invalid_message_closes_the_socket_and_is_not_delivered
    other = join
    [["{", 1007], ["[]", 1008], ['"name"', 1008], [{ name: "A", text: "x" * 1001 }.to_json, 1008]]
      .each do |sent, code|
        client = join
        client.text(sent)
        assert_equal code, client.closing.code, sent
      end
    say(other, "still here")

    assert_equal "still here", text(other)
  end

  def test_another_site_may_not_connect
    assert_equal 403, join(origin: "http://elsewhere.example").status
  end
end
